declare i1 @llvm.vector.reduce.or.v8i1(<8 x i1>)
declare <8 x float> @llvm.masked.load.v8f32.p0(ptr, i32 immarg, <8 x i1>, <8 x float>)
declare <8 x float> @llvm.fmuladd.v8f32(<8 x float>, <8 x float>, <8 x float>)
define internal <8 x float> @tw.exp.v8f32(<8 x float> %x0) alwaysinline nounwind willreturn memory(none) {
entry:
  %v1 = fcmp ogt <8 x float> %x0, splat (float 0x4056400000000000)
  %v2 = select <8 x i1> %v1, <8 x float> splat (float 0x4056400000000000), <8 x float> %x0
  %v3 = fcmp olt <8 x float> %v2, splat (float 0xC06601E680000000)
  %v4 = select <8 x i1> %v3, <8 x float> splat (float 0xC06601E680000000), <8 x float> %v2
  %v5 = call <8 x float> @llvm.fmuladd.v8f32(<8 x float> %v4, <8 x float> splat (float 0x3FF7154760000000), <8 x float> splat (float 0x4168001FC0000000))
  %v6 = fsub <8 x float> %v5, splat (float 0x4168001FC0000000)
  %v7 = call <8 x float> @llvm.fmuladd.v8f32(<8 x float> %v6, <8 x float> splat (float 0xBFE6300000000000), <8 x float> %v4)
  %v8 = call <8 x float> @llvm.fmuladd.v8f32(<8 x float> %v6, <8 x float> splat (float 0x3F2BD01060000000), <8 x float> %v7)
  %v9 = fmul <8 x float> %v8, %v8
  %v10 = call <8 x float> @llvm.fmuladd.v8f32(<8 x float> splat (float 0x3F56BEC060000000), <8 x float> %v8, <8 x float> splat (float 0x3F81227680000000))
  %v11 = call <8 x float> @llvm.fmuladd.v8f32(<8 x float> %v10, <8 x float> %v8, <8 x float> splat (float 0x3FA5556740000000))
  %v12 = call <8 x float> @llvm.fmuladd.v8f32(<8 x float> %v11, <8 x float> %v8, <8 x float> splat (float 0x3FC5554B00000000))
  %v13 = call <8 x float> @llvm.fmuladd.v8f32(<8 x float> %v12, <8 x float> %v8, <8 x float> splat (float 0x3FDFFFFFE0000000))
  %v14 = call <8 x float> @llvm.fmuladd.v8f32(<8 x float> %v9, <8 x float> %v13, <8 x float> %v8)
  %v15 = bitcast <8 x float> %v5 to <8 x i32>
  %v16 = call <8 x float> @llvm.fmuladd.v8f32(<8 x float> %v6, <8 x float> splat (float 0x3FE0000000000000), <8 x float> splat (float 0x4168000FE0000000))
  %v17 = bitcast <8 x float> %v16 to <8 x i32>
  %v18 = shl <8 x i32> %v17, splat (i32 23)
  %v19 = bitcast <8 x i32> %v18 to <8 x float>
  %v20 = sub <8 x i32> %v15, %v17
  %v21 = shl <8 x i32> %v20, splat (i32 23)
  %v22 = bitcast <8 x i32> %v21 to <8 x float>
  %v23 = call <8 x float> @llvm.fmuladd.v8f32(<8 x float> %v14, <8 x float> %v19, <8 x float> %v19)
  %v24 = fmul <8 x float> %v23, %v22
  ret <8 x float> %v24
}

define internal void @softmax.main(ptr noalias align 64 %p0, ptr noalias align 64 %p1, ptr %workspace, ptr %slice, i32 %threads) nounwind {
entry:
  %v3 = alloca [96 x i8], align 64
  %v4 = alloca <8 x float>, align 32
  %v31 = alloca float, align 4
  %v73 = alloca <8 x float>, align 32
  %v88 = alloca float, align 4
  %v20 = add <8 x i32> splat (i32 -5), <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  %v21 = icmp slt <8 x i32> %v20, zeroinitializer
  %v23 = call i1 @llvm.vector.reduce.or.v8i1(<8 x i1> %v21)
  %v69 = getelementptr i8, ptr %v3, i64 64
  %v72 = getelementptr i8, ptr %v3, i64 80
  %v122 = getelementptr i8, ptr %p0, i64 252
  br label %b1
b1:
  %v8 = phi ptr [ %p0, %entry ], [ %v121, %b110 ]
  %v107 = phi ptr [ %p1, %entry ], [ %v123, %b110 ]
  store <8 x float> splat (float 0xFFF0000000000000), ptr %v4, align 32
  %v18 = getelementptr i8, ptr %v8, i64 64
  br label %b5
b5:
  %v9 = phi ptr [ %v8, %b1 ], [ %v17, %b5 ]
  %v7 = load <8 x float>, ptr %v4, align 32
  %v10 = load <8 x float>, ptr %v9, align 4
  %v11 = fcmp ogt <8 x float> %v10, %v7
  %v12 = select <8 x i1> %v11, <8 x float> %v10, <8 x float> %v7
  %v13 = fcmp uno <8 x float> %v10, %v10
  %v14 = select <8 x i1> %v13, <8 x float> splat (float 0x7FF8000000000000), <8 x float> %v12
  store <8 x float> %v14, ptr %v4, align 32
  %v17 = getelementptr i8, ptr %v9, i64 32
  %v15 = icmp ne ptr %v17, %v18
  br i1 %v15, label %b5, label %b16, !llvm.loop !0
b16:
  %v19 = load <8 x float>, ptr %v4, align 32
  %v22 = getelementptr i8, ptr %v8, i64 64
  %v24 = select i1 %v23, ptr %v22, ptr %p0
  %v25 = call <8 x float> @llvm.masked.load.v8f32.p0(ptr %v24, i32 4, <8 x i1> %v21, <8 x float> zeroinitializer)
  %v26 = select <8 x i1> %v21, <8 x float> %v25, <8 x float> splat (float 0xFFF0000000000000)
  %v27 = fcmp ogt <8 x float> %v26, %v19
  %v28 = select <8 x i1> %v27, <8 x float> %v26, <8 x float> %v19
  %v29 = fcmp uno <8 x float> %v26, %v26
  %v30 = select <8 x i1> %v29, <8 x float> splat (float 0x7FF8000000000000), <8 x float> %v28
  store <8 x float> %v30, ptr %v4, align 32
  store float 0xFFF0000000000000, ptr %v31, align 4
  %v32 = shufflevector <8 x float> %v30, <8 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %v33 = shufflevector <8 x float> %v30, <8 x float> poison, <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %v34 = fcmp ogt <4 x float> %v33, %v32
  %v35 = select <4 x i1> %v34, <4 x float> %v33, <4 x float> %v32
  %v36 = fcmp uno <4 x float> %v33, %v33
  %v37 = select <4 x i1> %v36, <4 x float> splat (float 0x7FF8000000000000), <4 x float> %v35
  %v38 = shufflevector <4 x float> %v37, <4 x float> poison, <2 x i32> <i32 0, i32 1>
  %v39 = shufflevector <4 x float> %v37, <4 x float> poison, <2 x i32> <i32 2, i32 3>
  %v40 = fcmp ogt <2 x float> %v39, %v38
  %v41 = select <2 x i1> %v40, <2 x float> %v39, <2 x float> %v38
  %v42 = fcmp uno <2 x float> %v39, %v39
  %v43 = select <2 x i1> %v42, <2 x float> splat (float 0x7FF8000000000000), <2 x float> %v41
  %v44 = extractelement <2 x float> %v43, i64 0
  %v45 = extractelement <2 x float> %v43, i64 1
  %v46 = fcmp ogt float %v45, %v44
  %v47 = select i1 %v46, float %v45, float %v44
  %v48 = fcmp uno float %v45, %v45
  %v49 = select i1 %v48, float 0x7FF8000000000000, float %v47
  %v50 = fcmp ogt float 0xFFF0000000000000, %v49
  %v51 = select i1 %v50, float 0xFFF0000000000000, float %v49
  store float %v51, ptr %v31, align 4
  %v56 = insertelement <8 x float> poison, float %v51, i64 0
  %v57 = shufflevector <8 x float> %v56, <8 x float> poison, <8 x i32> zeroinitializer
  %v64 = getelementptr i8, ptr %v8, i64 64
  br label %b52
b52:
  %v54 = phi ptr [ %v8, %b16 ], [ %v63, %b52 ]
  %v60 = phi ptr [ %v3, %b16 ], [ %v65, %b52 ]
  %v55 = load <8 x float>, ptr %v54, align 4
  %v58 = fsub <8 x float> %v55, %v57
  %v59 = call <8 x float> @tw.exp.v8f32(<8 x float> %v58)
  store <8 x float> %v59, ptr %v60, align 32
  %v63 = getelementptr i8, ptr %v54, i64 32
  %v65 = getelementptr i8, ptr %v60, i64 32
  %v61 = icmp ne ptr %v63, %v64
  br i1 %v61, label %b52, label %b62, !llvm.loop !0
b62:
  %v66 = call <8 x float> @llvm.masked.load.v8f32.p0(ptr %v22, i32 4, <8 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 false, i1 false, i1 false>, <8 x float> zeroinitializer)
  %v67 = fsub <8 x float> %v66, %v57
  %v68 = call <8 x float> @tw.exp.v8f32(<8 x float> %v67)
  %v70 = shufflevector <8 x float> %v68, <8 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  store <4 x float> %v70, ptr %v69, align 4
  %v71 = extractelement <8 x float> %v68, i64 4
  store float %v71, ptr %v72, align 4
  store <8 x float> splat (float 0x0000000000000000), ptr %v73, align 32
  %v83 = getelementptr i8, ptr %v3, i64 64
  br label %b74
b74:
  %v77 = phi ptr [ %v3, %b62 ], [ %v82, %b74 ]
  %v76 = load <8 x float>, ptr %v73, align 32
  %v78 = load <8 x float>, ptr %v77, align 32
  %v79 = fadd <8 x float> %v76, %v78
  store <8 x float> %v79, ptr %v73, align 32
  %v82 = getelementptr i8, ptr %v77, i64 32
  %v80 = icmp ne ptr %v82, %v83
  br i1 %v80, label %b74, label %b81, !llvm.loop !0
b81:
  %v84 = load <8 x float>, ptr %v73, align 32
  %v85 = load <8 x float>, ptr %v69, align 32
  %v86 = select <8 x i1> %v21, <8 x float> %v85, <8 x float> splat (float 0x0000000000000000)
  %v87 = fadd <8 x float> %v84, %v86
  store <8 x float> %v87, ptr %v73, align 32
  store float 0x0000000000000000, ptr %v88, align 4
  %v89 = shufflevector <8 x float> %v87, <8 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %v90 = shufflevector <8 x float> %v87, <8 x float> poison, <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %v91 = fadd <4 x float> %v89, %v90
  %v92 = shufflevector <4 x float> %v91, <4 x float> poison, <2 x i32> <i32 0, i32 1>
  %v93 = shufflevector <4 x float> %v91, <4 x float> poison, <2 x i32> <i32 2, i32 3>
  %v94 = fadd <2 x float> %v92, %v93
  %v95 = extractelement <2 x float> %v94, i64 0
  %v96 = extractelement <2 x float> %v94, i64 1
  %v97 = fadd float %v95, %v96
  %v98 = fadd float 0x0000000000000000, %v97
  store float %v98, ptr %v88, align 4
  %v103 = fdiv float 0x3FF0000000000000, %v98
  %v104 = insertelement <8 x float> poison, float %v103, i64 0
  %v105 = shufflevector <8 x float> %v104, <8 x float> poison, <8 x i32> zeroinitializer
  %v112 = getelementptr i8, ptr %v3, i64 64
  br label %b99
b99:
  %v101 = phi ptr [ %v3, %b81 ], [ %v111, %b99 ]
  %v108 = phi ptr [ %v107, %b81 ], [ %v113, %b99 ]
  %v102 = load <8 x float>, ptr %v101, align 32
  %v106 = fmul <8 x float> %v102, %v105
  store <8 x float> %v106, ptr %v108, align 4
  %v111 = getelementptr i8, ptr %v101, i64 32
  %v113 = getelementptr i8, ptr %v108, i64 32
  %v109 = icmp ne ptr %v111, %v112
  br i1 %v109, label %b99, label %b110, !llvm.loop !0
b110:
  %v114 = fmul <8 x float> %v85, %v105
  %v115 = getelementptr i8, ptr %v107, i64 64
  %v116 = shufflevector <8 x float> %v114, <8 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  store <4 x float> %v116, ptr %v115, align 4
  %v117 = extractelement <8 x float> %v114, i64 4
  %v118 = getelementptr i8, ptr %v107, i64 80
  store float %v117, ptr %v118, align 4
  %v121 = getelementptr i8, ptr %v8, i64 84
  %v123 = getelementptr i8, ptr %v107, i64 84
  %v119 = icmp ne ptr %v121, %v122
  br i1 %v119, label %b1, label %b120, !llvm.loop !0
b120:
  ret void
}

define void @softmax(ptr %x0, ptr %x1, i32 %x2) nounwind {
entry:
  %v1 = load ptr, ptr %x0, align 8
  %v2 = getelementptr ptr, ptr %x0, i64 1
  %v3 = load ptr, ptr %v2, align 8
  %v4 = getelementptr i8, ptr %x1, i64 0
  call void @softmax.main(ptr %v1, ptr %v3, ptr %x1, ptr %v4, i32 %x2)
  ret void
}

!0 = distinct !{!0, !1, !2}
!1 = !{!"llvm.loop.unroll.disable"}
!2 = !{!"llvm.loop.vectorize.enable", i1 false}
