declare <8 x float> @llvm.fmuladd.v8f32(<8 x float>, <8 x float>, <8 x float>)
declare i64 @llvm.smin.i64(i64, i64)
declare void @GOMP_parallel(ptr, ptr, i32, i32)
declare i32 @omp_get_thread_num()
declare i32 @omp_get_num_threads()
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

define internal void @threads.par0.body(ptr noalias align 64 %p1, ptr noalias align 64 %p0, ptr %workspace, ptr %slice, i64 %first, i64 %stop) nounwind {
entry:
  %v5 = mul nsw i64 %first, 4000
  %v6 = getelementptr i8, ptr %p0, i64 %v5
  %v15 = getelementptr i8, ptr %p1, i64 %v5
  br label %b1
b1:
  %v7 = phi ptr [ %v6, %entry ], [ %v25, %b19 ]
  %v16 = phi ptr [ %v15, %entry ], [ %v26, %b19 ]
  %v2 = phi i64 [ %first, %entry ], [ %v27, %b19 ]
  %v21 = getelementptr i8, ptr %v7, i64 4000
  br label %b3
b3:
  %v8 = phi ptr [ %v7, %b1 ], [ %v20, %b3 ]
  %v17 = phi ptr [ %v16, %b1 ], [ %v22, %b3 ]
  %v9 = load <8 x float>, ptr %v8, align 32
  %v10 = fneg <8 x float> %v9
  %v11 = call <8 x float> @tw.exp.v8f32(<8 x float> %v10)
  %v12 = fadd <8 x float> splat (float 0x3FF0000000000000), %v11
  %v13 = fdiv <8 x float> splat (float 0x3FF0000000000000), %v12
  %v14 = fmul <8 x float> %v9, %v13
  store <8 x float> %v14, ptr %v17, align 32
  %v20 = getelementptr i8, ptr %v8, i64 32
  %v22 = getelementptr i8, ptr %v17, i64 32
  %v18 = icmp ne ptr %v20, %v21
  br i1 %v18, label %b3, label %b19, !llvm.loop !0
b19:
  %v25 = getelementptr i8, ptr %v7, i64 4000
  %v26 = getelementptr i8, ptr %v16, i64 4000
  %v27 = add nuw nsw i64 %v2, 1
  %v23 = icmp ult i64 %v27, %stop
  br i1 %v23, label %b1, label %b24, !llvm.loop !0
b24:
  ret void
}

define internal void @threads.main(ptr noalias align 64 %p0, ptr noalias align 64 %p1, ptr %workspace, ptr %slice, i32 %threads) nounwind {
entry:
  %v1 = alloca [5 x i64], align 8
  %v2 = icmp sgt i32 %threads, 1
  br i1 %v2, label %b3, label %b4
b3:
  %v5 = getelementptr i64, ptr %v1, i64 0
  store ptr %p1, ptr %v5
  %v6 = getelementptr i64, ptr %v1, i64 1
  store ptr %p0, ptr %v6
  %v7 = getelementptr i64, ptr %v1, i64 2
  store ptr %workspace, ptr %v7
  %v8 = getelementptr i64, ptr %v1, i64 3
  store ptr %slice, ptr %v8
  %v9 = getelementptr i64, ptr %v1, i64 4
  store i64 500, ptr %v9
  %v10 = sext i32 %threads to i64
  %v11 = call i64 @llvm.smin.i64(i64 %v10, i64 500)
  %v12 = trunc i64 %v11 to i32
  call void @GOMP_parallel(ptr @threads.par0, ptr %v1, i32 %v12, i32 0)
  br label %b13
b4:
  call void @threads.par0.body(ptr %p1, ptr %p0, ptr %workspace, ptr %slice, i64 0, i64 500)
  br label %b13
b13:
  ret void
}

define internal void @threads.par0(ptr %x0) nounwind {
entry:
  %v1 = load ptr, ptr %x0, align 8
  %v2 = getelementptr i64, ptr %x0, i64 1
  %v3 = load ptr, ptr %v2, align 8
  %v4 = getelementptr i64, ptr %x0, i64 2
  %v5 = load ptr, ptr %v4, align 8
  %v6 = getelementptr i64, ptr %x0, i64 3
  %v7 = load ptr, ptr %v6, align 8
  %v8 = getelementptr i64, ptr %x0, i64 4
  %v9 = load i64, ptr %v8, align 8
  %v10 = call i32 @omp_get_thread_num()
  %v11 = call i32 @omp_get_num_threads()
  %v12 = zext i32 %v10 to i64
  %v13 = zext i32 %v11 to i64
  %v14 = mul i64 %v12, %v9
  %v15 = add i64 %v14, %v9
  %v16 = udiv i64 %v14, %v13
  %v17 = udiv i64 %v15, %v13
  %v18 = mul i64 %v12, 0
  %v19 = getelementptr i8, ptr %v7, i64 %v18
  %v20 = icmp ult i64 %v16, %v17
  br i1 %v20, label %b21, label %b22
b21:
  call void @threads.par0.body(ptr %v1, ptr %v3, ptr %v5, ptr %v19, i64 %v16, i64 %v17)
  br label %b22
b22:
  ret void
}

define void @threads(ptr %x0, ptr %x1, i32 %x2) nounwind {
entry:
  %v1 = load ptr, ptr %x0, align 8
  %v2 = getelementptr ptr, ptr %x0, i64 1
  %v3 = load ptr, ptr %v2, align 8
  %v4 = getelementptr i8, ptr %x1, i64 0
  call void @threads.main(ptr %v1, ptr %v3, ptr %x1, ptr %v4, i32 %x2)
  ret void
}

!0 = distinct !{!0, !1, !2}
!1 = !{!"llvm.loop.unroll.disable"}
!2 = !{!"llvm.loop.vectorize.enable", i1 false}
