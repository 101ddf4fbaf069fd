define internal void @pooling.main(ptr noalias align 64 %p0, ptr noalias align 64 %p1, ptr %workspace, ptr %slice, i32 %threads) nounwind {
entry:
  %v10 = alloca float, align 4
  %v48 = getelementptr i8, ptr %p1, i64 256
  br label %b1
b1:
  %v7 = phi ptr [ %p1, %entry ], [ %v47, %b41 ]
  %v16 = phi ptr [ %p0, %entry ], [ %v49, %b41 ]
  %v43 = getelementptr i8, ptr %v7, i64 16
  br label %b3
b3:
  %v8 = phi ptr [ %v7, %b1 ], [ %v42, %b36 ]
  %v17 = phi ptr [ %v16, %b1 ], [ %v44, %b36 ]
  %v38 = getelementptr i8, ptr %v8, i64 8
  br label %b5
b5:
  %v9 = phi ptr [ %v8, %b3 ], [ %v37, %b31 ]
  %v18 = phi ptr [ %v17, %b3 ], [ %v39, %b31 ]
  store float 0xFFF0000000000000, ptr %v9, align 4
  store float 0xFFF0000000000000, ptr %v10, align 4
  %v33 = getelementptr i8, ptr %v18, i64 60
  br label %b11
b11:
  %v19 = phi ptr [ %v18, %b5 ], [ %v32, %b27 ]
  %v29 = getelementptr i8, ptr %v19, i64 12
  br label %b13
b13:
  %v20 = phi ptr [ %v19, %b11 ], [ %v28, %b13 ]
  %v15 = load float, ptr %v10, align 4
  %v21 = load float, ptr %v20, align 4
  %v22 = fcmp ogt float %v21, %v15
  %v23 = select i1 %v22, float %v21, float %v15
  %v24 = fcmp uno float %v21, %v21
  %v25 = select i1 %v24, float 0x7FF8000000000000, float %v23
  store float %v25, ptr %v10, align 4
  %v28 = getelementptr i8, ptr %v20, i64 4
  %v26 = icmp ne ptr %v28, %v29
  br i1 %v26, label %b13, label %b27, !llvm.loop !0
b27:
  %v32 = getelementptr i8, ptr %v19, i64 20
  %v30 = icmp ne ptr %v32, %v33
  br i1 %v30, label %b11, label %b31, !llvm.loop !0
b31:
  %v34 = load float, ptr %v10, align 4
  store float %v34, ptr %v9, align 4
  %v37 = getelementptr i8, ptr %v9, i64 4
  %v39 = getelementptr i8, ptr %v18, i64 8
  %v35 = icmp ne ptr %v37, %v38
  br i1 %v35, label %b5, label %b36, !llvm.loop !0
b36:
  %v42 = getelementptr i8, ptr %v8, i64 8
  %v44 = getelementptr i8, ptr %v17, i64 40
  %v40 = icmp ne ptr %v42, %v43
  br i1 %v40, label %b3, label %b41, !llvm.loop !0
b41:
  %v47 = getelementptr i8, ptr %v7, i64 16
  %v49 = getelementptr i8, ptr %v16, i64 100
  %v45 = icmp ne ptr %v47, %v48
  br i1 %v45, label %b1, label %b46, !llvm.loop !0
b46:
  ret void
}

define void @pooling(ptr %x0, ptr %x1, i32 %x2) nounwind {
entry:
  %v1 = load ptr, ptr %x0, align 8
  %v2 = getelementptr ptr, ptr %x0, i64 1
  %v3 = load ptr, ptr %v2, align 8
  %v4 = getelementptr i8, ptr %x1, i64 0
  call void @pooling.main(ptr %v1, ptr %v3, ptr %x1, ptr %v4, i32 %x2)
  ret void
}

!0 = distinct !{!0, !1, !2}
!1 = !{!"llvm.loop.unroll.disable"}
!2 = !{!"llvm.loop.vectorize.enable", i1 false}
