declare <8 x float> @llvm.masked.load.v8f32.p0(ptr, i32 immarg, <8 x i1>, <8 x float>)
declare <8 x float> @llvm.fmuladd.v8f32(<8 x float>, <8 x float>, <8 x float>)
define internal <8 x float> @tw.exp.v8f32(<8 x float> %x0) alwaysinline nounwind willreturn memory(none) {
  %m0 = fcmp ogt <8 x float> %x0, splat (float 0x4056400000000000)
  %m1 = select <8 x i1> %m0, <8 x float> splat (float 0x4056400000000000), <8 x float> %x0
  %m2 = fcmp olt <8 x float> %m1, splat (float 0xC06601E680000000)
  %m3 = select <8 x i1> %m2, <8 x float> splat (float 0xC06601E680000000), <8 x float> %m1
  %m4 = call <8 x float> @llvm.fmuladd.v8f32(<8 x float> %m3, <8 x float> splat (float 0x3FF7154760000000), <8 x float> splat (float 0x4168001FC0000000))
  %m5 = fsub <8 x float> %m4, splat (float 0x4168001FC0000000)
  %m6 = call <8 x float> @llvm.fmuladd.v8f32(<8 x float> %m5, <8 x float> splat (float 0xBFE6300000000000), <8 x float> %m3)
  %m7 = call <8 x float> @llvm.fmuladd.v8f32(<8 x float> %m5, <8 x float> splat (float 0x3F2BD01060000000), <8 x float> %m6)
  %m8 = fmul <8 x float> %m7, %m7
  %m9 = call <8 x float> @llvm.fmuladd.v8f32(<8 x float> splat (float 0x3F56BEC060000000), <8 x float> %m7, <8 x float> splat (float 0x3F81227680000000))
  %m10 = call <8 x float> @llvm.fmuladd.v8f32(<8 x float> %m9, <8 x float> %m7, <8 x float> splat (float 0x3FA5556740000000))
  %m11 = call <8 x float> @llvm.fmuladd.v8f32(<8 x float> %m10, <8 x float> %m7, <8 x float> splat (float 0x3FC5554B00000000))
  %m12 = call <8 x float> @llvm.fmuladd.v8f32(<8 x float> %m11, <8 x float> %m7, <8 x float> splat (float 0x3FDFFFFFE0000000))
  %m13 = call <8 x float> @llvm.fmuladd.v8f32(<8 x float> %m8, <8 x float> %m12, <8 x float> %m7)
  %m14 = bitcast <8 x float> %m4 to <8 x i32>
  %m15 = call <8 x float> @llvm.fmuladd.v8f32(<8 x float> %m5, <8 x float> splat (float 0x3FE0000000000000), <8 x float> splat (float 0x4168000FE0000000))
  %m16 = bitcast <8 x float> %m15 to <8 x i32>
  %m17 = shl <8 x i32> %m16, splat (i32 23)
  %m18 = bitcast <8 x i32> %m17 to <8 x float>
  %m19 = sub <8 x i32> %m14, %m16
  %m20 = shl <8 x i32> %m19, splat (i32 23)
  %m21 = bitcast <8 x i32> %m20 to <8 x float>
  %m22 = call <8 x float> @llvm.fmuladd.v8f32(<8 x float> %m13, <8 x float> %m18, <8 x float> %m18)
  %m23 = fmul <8 x float> %m22, %m21
  ret <8 x float> %m23
}

define internal void @softmax.main(ptr noalias align 64 %p0, ptr noalias align 64 %p1, ptr %workspace, ptr %slice, i32 %threads) nounwind {
entry:
  %v3 = alloca [84 x i8], align 64
  %v4 = alloca <8 x float>, align 32
  %v29 = alloca float, align 4
  %v71 = alloca <8 x float>, align 32
  %v86 = alloca float, align 4
  %v20 = add <8 x i32> splat (i32 -5), <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  %v21 = icmp slt <8 x i32> %v20, zeroinitializer
  %v67 = getelementptr i8, ptr %v3, i64 64
  %v70 = getelementptr i8, ptr %v3, i64 80
  %v121 = getelementptr i8, ptr %p0, i64 252
  br label %b1
b1:
  %v8 = phi ptr [ %p0, %entry ], [ %v120, %b108 ]
  %v105 = phi ptr [ %p1, %entry ], [ %v122, %b108 ]
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
  %v23 = call <8 x float> @llvm.masked.load.v8f32.p0(ptr %v22, i32 4, <8 x i1> %v21, <8 x float> zeroinitializer)
  %v24 = select <8 x i1> %v21, <8 x float> %v23, <8 x float> splat (float 0xFFF0000000000000)
  %v25 = fcmp ogt <8 x float> %v24, %v19
  %v26 = select <8 x i1> %v25, <8 x float> %v24, <8 x float> %v19
  %v27 = fcmp uno <8 x float> %v24, %v24
  %v28 = select <8 x i1> %v27, <8 x float> splat (float 0x7FF8000000000000), <8 x float> %v26
  store <8 x float> %v28, ptr %v4, align 32
  store float 0xFFF0000000000000, ptr %v29, align 4
  %v30 = shufflevector <8 x float> %v28, <8 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %v31 = shufflevector <8 x float> %v28, <8 x float> poison, <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %v32 = fcmp ogt <4 x float> %v31, %v30
  %v33 = select <4 x i1> %v32, <4 x float> %v31, <4 x float> %v30
  %v34 = fcmp uno <4 x float> %v31, %v31
  %v35 = select <4 x i1> %v34, <4 x float> splat (float 0x7FF8000000000000), <4 x float> %v33
  %v36 = shufflevector <4 x float> %v35, <4 x float> poison, <2 x i32> <i32 0, i32 1>
  %v37 = shufflevector <4 x float> %v35, <4 x float> poison, <2 x i32> <i32 2, i32 3>
  %v38 = fcmp ogt <2 x float> %v37, %v36
  %v39 = select <2 x i1> %v38, <2 x float> %v37, <2 x float> %v36
  %v40 = fcmp uno <2 x float> %v37, %v37
  %v41 = select <2 x i1> %v40, <2 x float> splat (float 0x7FF8000000000000), <2 x float> %v39
  %v42 = extractelement <2 x float> %v41, i64 0
  %v43 = extractelement <2 x float> %v41, i64 1
  %v44 = fcmp ogt float %v43, %v42
  %v45 = select i1 %v44, float %v43, float %v42
  %v46 = fcmp uno float %v43, %v43
  %v47 = select i1 %v46, float 0x7FF8000000000000, float %v45
  %v48 = fcmp ogt float 0xFFF0000000000000, %v47
  %v49 = select i1 %v48, float 0xFFF0000000000000, float %v47
  store float %v49, ptr %v29, align 4
  %v54 = insertelement <8 x float> poison, float %v49, i64 0
  %v55 = shufflevector <8 x float> %v54, <8 x float> poison, <8 x i32> zeroinitializer
  %v62 = getelementptr i8, ptr %v8, i64 64
  br label %b50
b50:
  %v52 = phi ptr [ %v8, %b16 ], [ %v61, %b50 ]
  %v58 = phi ptr [ %v3, %b16 ], [ %v63, %b50 ]
  %v53 = load <8 x float>, ptr %v52, align 4
  %v56 = fsub <8 x float> %v53, %v55
  %v57 = call <8 x float> @tw.exp.v8f32(<8 x float> %v56)
  store <8 x float> %v57, ptr %v58, align 32
  %v61 = getelementptr i8, ptr %v52, i64 32
  %v63 = getelementptr i8, ptr %v58, i64 32
  %v59 = icmp ne ptr %v61, %v62
  br i1 %v59, label %b50, label %b60, !llvm.loop !0
b60:
  %v64 = call <8 x float> @llvm.masked.load.v8f32.p0(ptr %v22, i32 4, <8 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 false, i1 false, i1 false>, <8 x float> zeroinitializer)
  %v65 = fsub <8 x float> %v64, %v55
  %v66 = call <8 x float> @tw.exp.v8f32(<8 x float> %v65)
  %v68 = shufflevector <8 x float> %v66, <8 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  store <4 x float> %v68, ptr %v67, align 4
  %v69 = extractelement <8 x float> %v66, i64 4
  store float %v69, ptr %v70, align 4
  store <8 x float> splat (float 0x0000000000000000), ptr %v71, align 32
  %v81 = getelementptr i8, ptr %v3, i64 64
  br label %b72
b72:
  %v75 = phi ptr [ %v3, %b60 ], [ %v80, %b72 ]
  %v74 = load <8 x float>, ptr %v71, align 32
  %v76 = load <8 x float>, ptr %v75, align 32
  %v77 = fadd <8 x float> %v74, %v76
  store <8 x float> %v77, ptr %v71, align 32
  %v80 = getelementptr i8, ptr %v75, i64 32
  %v78 = icmp ne ptr %v80, %v81
  br i1 %v78, label %b72, label %b79, !llvm.loop !0
b79:
  %v82 = load <8 x float>, ptr %v71, align 32
  %v83 = call <8 x float> @llvm.masked.load.v8f32.p0(ptr %v67, i32 32, <8 x i1> %v21, <8 x float> zeroinitializer)
  %v84 = select <8 x i1> %v21, <8 x float> %v83, <8 x float> splat (float 0x0000000000000000)
  %v85 = fadd <8 x float> %v82, %v84
  store <8 x float> %v85, ptr %v71, align 32
  store float 0x0000000000000000, ptr %v86, align 4
  %v87 = shufflevector <8 x float> %v85, <8 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %v88 = shufflevector <8 x float> %v85, <8 x float> poison, <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %v89 = fadd <4 x float> %v87, %v88
  %v90 = shufflevector <4 x float> %v89, <4 x float> poison, <2 x i32> <i32 0, i32 1>
  %v91 = shufflevector <4 x float> %v89, <4 x float> poison, <2 x i32> <i32 2, i32 3>
  %v92 = fadd <2 x float> %v90, %v91
  %v93 = extractelement <2 x float> %v92, i64 0
  %v94 = extractelement <2 x float> %v92, i64 1
  %v95 = fadd float %v93, %v94
  %v96 = fadd float 0x0000000000000000, %v95
  store float %v96, ptr %v86, align 4
  %v101 = fdiv float 0x3FF0000000000000, %v96
  %v102 = insertelement <8 x float> poison, float %v101, i64 0
  %v103 = shufflevector <8 x float> %v102, <8 x float> poison, <8 x i32> zeroinitializer
  %v110 = getelementptr i8, ptr %v3, i64 64
  br label %b97
b97:
  %v99 = phi ptr [ %v3, %b79 ], [ %v109, %b97 ]
  %v106 = phi ptr [ %v105, %b79 ], [ %v111, %b97 ]
  %v100 = load <8 x float>, ptr %v99, align 32
  %v104 = fmul <8 x float> %v100, %v103
  store <8 x float> %v104, ptr %v106, align 4
  %v109 = getelementptr i8, ptr %v99, i64 32
  %v111 = getelementptr i8, ptr %v106, i64 32
  %v107 = icmp ne ptr %v109, %v110
  br i1 %v107, label %b97, label %b108, !llvm.loop !0
b108:
  %v112 = call <8 x float> @llvm.masked.load.v8f32.p0(ptr %v67, i32 32, <8 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 false, i1 false, i1 false>, <8 x float> zeroinitializer)
  %v113 = fmul <8 x float> %v112, %v103
  %v114 = getelementptr i8, ptr %v105, i64 64
  %v115 = shufflevector <8 x float> %v113, <8 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  store <4 x float> %v115, ptr %v114, align 4
  %v116 = extractelement <8 x float> %v113, i64 4
  %v117 = getelementptr i8, ptr %v105, i64 80
  store float %v116, ptr %v117, align 4
  %v120 = getelementptr i8, ptr %v8, i64 84
  %v122 = getelementptr i8, ptr %v105, i64 84
  %v118 = icmp ne ptr %v120, %v121
  br i1 %v118, label %b1, label %b119, !llvm.loop !0
b119:
  ret void
}

define void @softmax(ptr %args, ptr %workspace, i32 %threads) nounwind {
  %a0 = getelementptr ptr, ptr %args, i64 0
  %p0 = load ptr, ptr %a0
  %a1 = getelementptr ptr, ptr %args, i64 1
  %p1 = load ptr, ptr %a1
  %slice = getelementptr i8, ptr %workspace, i64 0
  call void @softmax.main(ptr %p0, ptr %p1, ptr %workspace, ptr %slice, i32 %threads)
  ret void
}

!0 = distinct !{!0, !1, !2}
!1 = !{!"llvm.loop.unroll.disable"}
!2 = !{!"llvm.loop.vectorize.enable", i1 false}
