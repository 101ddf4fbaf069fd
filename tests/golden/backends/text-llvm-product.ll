declare <8 x float> @llvm.fma.v8f32(<8 x float>, <8 x float>, <8 x float>)
define internal void @product.main(ptr noalias align 64 %p0, ptr noalias align 64 %p1, ptr noalias align 64 %p2, ptr %workspace, ptr %slice, i32 %threads) nounwind {
entry:
  %v1 = alloca <8 x float>, align 32
  %v2 = alloca <8 x float>, align 32
  %v3 = alloca <8 x float>, align 32
  %v4 = alloca <8 x float>, align 32
  %v5 = alloca <8 x float>, align 32
  %v6 = alloca <8 x float>, align 32
  %v7 = alloca <8 x float>, align 32
  %v8 = alloca <8 x float>, align 32
  %v9 = alloca <8 x float>, align 32
  %v10 = alloca <8 x float>, align 32
  %v11 = alloca <8 x float>, align 32
  %v12 = alloca <8 x float>, align 32
  store <8 x float> splat (float 0x0000000000000000), ptr %v1, align 32
  store <8 x float> splat (float 0x0000000000000000), ptr %v2, align 32
  store <8 x float> splat (float 0x0000000000000000), ptr %v3, align 32
  store <8 x float> splat (float 0x0000000000000000), ptr %v4, align 32
  store <8 x float> splat (float 0x0000000000000000), ptr %v5, align 32
  store <8 x float> splat (float 0x0000000000000000), ptr %v6, align 32
  store <8 x float> splat (float 0x0000000000000000), ptr %v7, align 32
  store <8 x float> splat (float 0x0000000000000000), ptr %v8, align 32
  store <8 x float> splat (float 0x0000000000000000), ptr %v9, align 32
  store <8 x float> splat (float 0x0000000000000000), ptr %v10, align 32
  store <8 x float> splat (float 0x0000000000000000), ptr %v11, align 32
  store <8 x float> splat (float 0x0000000000000000), ptr %v12, align 32
  %v13 = load float, ptr %p0, align 4
  %v14 = load <8 x float>, ptr %p1, align 32
  %v15 = insertelement <8 x float> poison, float %v13, i64 0
  %v16 = shufflevector <8 x float> %v15, <8 x float> poison, <8 x i32> zeroinitializer
  %v17 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v16, <8 x float> %v14, <8 x float> splat (float 0x0000000000000000))
  call void asm sideeffect "", "x,x"(<8 x float> %v16, <8 x float> %v17)
  store <8 x float> %v17, ptr %v1, align 32
  %v18 = getelementptr i8, ptr %p1, i64 32
  %v19 = load <8 x float>, ptr %v18, align 32
  %v20 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v16, <8 x float> %v19, <8 x float> splat (float 0x0000000000000000))
  call void asm sideeffect "", "x,x"(<8 x float> %v16, <8 x float> %v20)
  store <8 x float> %v20, ptr %v2, align 32
  %v21 = getelementptr i8, ptr %p0, i64 40
  %v22 = load float, ptr %v21, align 4
  %v23 = insertelement <8 x float> poison, float %v22, i64 0
  %v24 = shufflevector <8 x float> %v23, <8 x float> poison, <8 x i32> zeroinitializer
  %v25 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v24, <8 x float> %v14, <8 x float> splat (float 0x0000000000000000))
  call void asm sideeffect "", "x,x"(<8 x float> %v24, <8 x float> %v25)
  store <8 x float> %v25, ptr %v3, align 32
  %v26 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v24, <8 x float> %v19, <8 x float> splat (float 0x0000000000000000))
  call void asm sideeffect "", "x,x"(<8 x float> %v24, <8 x float> %v26)
  store <8 x float> %v26, ptr %v4, align 32
  %v27 = getelementptr i8, ptr %p0, i64 80
  %v28 = load float, ptr %v27, align 4
  %v29 = insertelement <8 x float> poison, float %v28, i64 0
  %v30 = shufflevector <8 x float> %v29, <8 x float> poison, <8 x i32> zeroinitializer
  %v31 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v30, <8 x float> %v14, <8 x float> splat (float 0x0000000000000000))
  call void asm sideeffect "", "x,x"(<8 x float> %v30, <8 x float> %v31)
  store <8 x float> %v31, ptr %v5, align 32
  %v32 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v30, <8 x float> %v19, <8 x float> splat (float 0x0000000000000000))
  call void asm sideeffect "", "x,x"(<8 x float> %v30, <8 x float> %v32)
  store <8 x float> %v32, ptr %v6, align 32
  %v33 = getelementptr i8, ptr %p0, i64 120
  %v34 = load float, ptr %v33, align 4
  %v35 = insertelement <8 x float> poison, float %v34, i64 0
  %v36 = shufflevector <8 x float> %v35, <8 x float> poison, <8 x i32> zeroinitializer
  %v37 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v36, <8 x float> %v14, <8 x float> splat (float 0x0000000000000000))
  call void asm sideeffect "", "x,x"(<8 x float> %v36, <8 x float> %v37)
  store <8 x float> %v37, ptr %v7, align 32
  %v38 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v36, <8 x float> %v19, <8 x float> splat (float 0x0000000000000000))
  call void asm sideeffect "", "x,x"(<8 x float> %v36, <8 x float> %v38)
  store <8 x float> %v38, ptr %v8, align 32
  %v39 = getelementptr i8, ptr %p0, i64 160
  %v40 = load float, ptr %v39, align 4
  %v41 = insertelement <8 x float> poison, float %v40, i64 0
  %v42 = shufflevector <8 x float> %v41, <8 x float> poison, <8 x i32> zeroinitializer
  %v43 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v42, <8 x float> %v14, <8 x float> splat (float 0x0000000000000000))
  call void asm sideeffect "", "x,x"(<8 x float> %v42, <8 x float> %v43)
  store <8 x float> %v43, ptr %v9, align 32
  %v44 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v42, <8 x float> %v19, <8 x float> splat (float 0x0000000000000000))
  call void asm sideeffect "", "x,x"(<8 x float> %v42, <8 x float> %v44)
  store <8 x float> %v44, ptr %v10, align 32
  %v45 = getelementptr i8, ptr %p0, i64 200
  %v46 = load float, ptr %v45, align 4
  %v47 = insertelement <8 x float> poison, float %v46, i64 0
  %v48 = shufflevector <8 x float> %v47, <8 x float> poison, <8 x i32> zeroinitializer
  %v49 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v48, <8 x float> %v14, <8 x float> splat (float 0x0000000000000000))
  call void asm sideeffect "", "x,x"(<8 x float> %v48, <8 x float> %v49)
  store <8 x float> %v49, ptr %v11, align 32
  %v50 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v48, <8 x float> %v19, <8 x float> splat (float 0x0000000000000000))
  call void asm sideeffect "", "x,x"(<8 x float> %v48, <8 x float> %v50)
  store <8 x float> %v50, ptr %v12, align 32
  %v51 = getelementptr i8, ptr %p0, i64 4
  %v52 = load float, ptr %v51, align 4
  %v53 = getelementptr i8, ptr %p1, i64 64
  %v54 = load <8 x float>, ptr %v53, align 32
  %v55 = insertelement <8 x float> poison, float %v52, i64 0
  %v56 = shufflevector <8 x float> %v55, <8 x float> poison, <8 x i32> zeroinitializer
  %v57 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v56, <8 x float> %v54, <8 x float> %v17)
  call void asm sideeffect "", "x,x"(<8 x float> %v56, <8 x float> %v57)
  store <8 x float> %v57, ptr %v1, align 32
  %v58 = getelementptr i8, ptr %p1, i64 96
  %v59 = load <8 x float>, ptr %v58, align 32
  %v60 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v56, <8 x float> %v59, <8 x float> %v20)
  call void asm sideeffect "", "x,x"(<8 x float> %v56, <8 x float> %v60)
  store <8 x float> %v60, ptr %v2, align 32
  %v61 = getelementptr i8, ptr %p0, i64 44
  %v62 = load float, ptr %v61, align 4
  %v63 = insertelement <8 x float> poison, float %v62, i64 0
  %v64 = shufflevector <8 x float> %v63, <8 x float> poison, <8 x i32> zeroinitializer
  %v65 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v64, <8 x float> %v54, <8 x float> %v25)
  call void asm sideeffect "", "x,x"(<8 x float> %v64, <8 x float> %v65)
  store <8 x float> %v65, ptr %v3, align 32
  %v66 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v64, <8 x float> %v59, <8 x float> %v26)
  call void asm sideeffect "", "x,x"(<8 x float> %v64, <8 x float> %v66)
  store <8 x float> %v66, ptr %v4, align 32
  %v67 = getelementptr i8, ptr %p0, i64 84
  %v68 = load float, ptr %v67, align 4
  %v69 = insertelement <8 x float> poison, float %v68, i64 0
  %v70 = shufflevector <8 x float> %v69, <8 x float> poison, <8 x i32> zeroinitializer
  %v71 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v70, <8 x float> %v54, <8 x float> %v31)
  call void asm sideeffect "", "x,x"(<8 x float> %v70, <8 x float> %v71)
  store <8 x float> %v71, ptr %v5, align 32
  %v72 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v70, <8 x float> %v59, <8 x float> %v32)
  call void asm sideeffect "", "x,x"(<8 x float> %v70, <8 x float> %v72)
  store <8 x float> %v72, ptr %v6, align 32
  %v73 = getelementptr i8, ptr %p0, i64 124
  %v74 = load float, ptr %v73, align 4
  %v75 = insertelement <8 x float> poison, float %v74, i64 0
  %v76 = shufflevector <8 x float> %v75, <8 x float> poison, <8 x i32> zeroinitializer
  %v77 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v76, <8 x float> %v54, <8 x float> %v37)
  call void asm sideeffect "", "x,x"(<8 x float> %v76, <8 x float> %v77)
  store <8 x float> %v77, ptr %v7, align 32
  %v78 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v76, <8 x float> %v59, <8 x float> %v38)
  call void asm sideeffect "", "x,x"(<8 x float> %v76, <8 x float> %v78)
  store <8 x float> %v78, ptr %v8, align 32
  %v79 = getelementptr i8, ptr %p0, i64 164
  %v80 = load float, ptr %v79, align 4
  %v81 = insertelement <8 x float> poison, float %v80, i64 0
  %v82 = shufflevector <8 x float> %v81, <8 x float> poison, <8 x i32> zeroinitializer
  %v83 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v82, <8 x float> %v54, <8 x float> %v43)
  call void asm sideeffect "", "x,x"(<8 x float> %v82, <8 x float> %v83)
  store <8 x float> %v83, ptr %v9, align 32
  %v84 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v82, <8 x float> %v59, <8 x float> %v44)
  call void asm sideeffect "", "x,x"(<8 x float> %v82, <8 x float> %v84)
  store <8 x float> %v84, ptr %v10, align 32
  %v85 = getelementptr i8, ptr %p0, i64 204
  %v86 = load float, ptr %v85, align 4
  %v87 = insertelement <8 x float> poison, float %v86, i64 0
  %v88 = shufflevector <8 x float> %v87, <8 x float> poison, <8 x i32> zeroinitializer
  %v89 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v88, <8 x float> %v54, <8 x float> %v49)
  call void asm sideeffect "", "x,x"(<8 x float> %v88, <8 x float> %v89)
  store <8 x float> %v89, ptr %v11, align 32
  %v90 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v88, <8 x float> %v59, <8 x float> %v50)
  call void asm sideeffect "", "x,x"(<8 x float> %v88, <8 x float> %v90)
  store <8 x float> %v90, ptr %v12, align 32
  %v91 = getelementptr i8, ptr %p0, i64 8
  %v92 = load float, ptr %v91, align 4
  %v93 = getelementptr i8, ptr %p1, i64 128
  %v94 = load <8 x float>, ptr %v93, align 32
  %v95 = insertelement <8 x float> poison, float %v92, i64 0
  %v96 = shufflevector <8 x float> %v95, <8 x float> poison, <8 x i32> zeroinitializer
  %v97 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v96, <8 x float> %v94, <8 x float> %v57)
  call void asm sideeffect "", "x,x"(<8 x float> %v96, <8 x float> %v97)
  store <8 x float> %v97, ptr %v1, align 32
  %v98 = getelementptr i8, ptr %p1, i64 160
  %v99 = load <8 x float>, ptr %v98, align 32
  %v100 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v96, <8 x float> %v99, <8 x float> %v60)
  call void asm sideeffect "", "x,x"(<8 x float> %v96, <8 x float> %v100)
  store <8 x float> %v100, ptr %v2, align 32
  %v101 = getelementptr i8, ptr %p0, i64 48
  %v102 = load float, ptr %v101, align 4
  %v103 = insertelement <8 x float> poison, float %v102, i64 0
  %v104 = shufflevector <8 x float> %v103, <8 x float> poison, <8 x i32> zeroinitializer
  %v105 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v104, <8 x float> %v94, <8 x float> %v65)
  call void asm sideeffect "", "x,x"(<8 x float> %v104, <8 x float> %v105)
  store <8 x float> %v105, ptr %v3, align 32
  %v106 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v104, <8 x float> %v99, <8 x float> %v66)
  call void asm sideeffect "", "x,x"(<8 x float> %v104, <8 x float> %v106)
  store <8 x float> %v106, ptr %v4, align 32
  %v107 = getelementptr i8, ptr %p0, i64 88
  %v108 = load float, ptr %v107, align 4
  %v109 = insertelement <8 x float> poison, float %v108, i64 0
  %v110 = shufflevector <8 x float> %v109, <8 x float> poison, <8 x i32> zeroinitializer
  %v111 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v110, <8 x float> %v94, <8 x float> %v71)
  call void asm sideeffect "", "x,x"(<8 x float> %v110, <8 x float> %v111)
  store <8 x float> %v111, ptr %v5, align 32
  %v112 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v110, <8 x float> %v99, <8 x float> %v72)
  call void asm sideeffect "", "x,x"(<8 x float> %v110, <8 x float> %v112)
  store <8 x float> %v112, ptr %v6, align 32
  %v113 = getelementptr i8, ptr %p0, i64 128
  %v114 = load float, ptr %v113, align 4
  %v115 = insertelement <8 x float> poison, float %v114, i64 0
  %v116 = shufflevector <8 x float> %v115, <8 x float> poison, <8 x i32> zeroinitializer
  %v117 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v116, <8 x float> %v94, <8 x float> %v77)
  call void asm sideeffect "", "x,x"(<8 x float> %v116, <8 x float> %v117)
  store <8 x float> %v117, ptr %v7, align 32
  %v118 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v116, <8 x float> %v99, <8 x float> %v78)
  call void asm sideeffect "", "x,x"(<8 x float> %v116, <8 x float> %v118)
  store <8 x float> %v118, ptr %v8, align 32
  %v119 = getelementptr i8, ptr %p0, i64 168
  %v120 = load float, ptr %v119, align 4
  %v121 = insertelement <8 x float> poison, float %v120, i64 0
  %v122 = shufflevector <8 x float> %v121, <8 x float> poison, <8 x i32> zeroinitializer
  %v123 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v122, <8 x float> %v94, <8 x float> %v83)
  call void asm sideeffect "", "x,x"(<8 x float> %v122, <8 x float> %v123)
  store <8 x float> %v123, ptr %v9, align 32
  %v124 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v122, <8 x float> %v99, <8 x float> %v84)
  call void asm sideeffect "", "x,x"(<8 x float> %v122, <8 x float> %v124)
  store <8 x float> %v124, ptr %v10, align 32
  %v125 = getelementptr i8, ptr %p0, i64 208
  %v126 = load float, ptr %v125, align 4
  %v127 = insertelement <8 x float> poison, float %v126, i64 0
  %v128 = shufflevector <8 x float> %v127, <8 x float> poison, <8 x i32> zeroinitializer
  %v129 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v128, <8 x float> %v94, <8 x float> %v89)
  call void asm sideeffect "", "x,x"(<8 x float> %v128, <8 x float> %v129)
  store <8 x float> %v129, ptr %v11, align 32
  %v130 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v128, <8 x float> %v99, <8 x float> %v90)
  call void asm sideeffect "", "x,x"(<8 x float> %v128, <8 x float> %v130)
  store <8 x float> %v130, ptr %v12, align 32
  %v131 = getelementptr i8, ptr %p0, i64 12
  %v132 = load float, ptr %v131, align 4
  %v133 = getelementptr i8, ptr %p1, i64 192
  %v134 = load <8 x float>, ptr %v133, align 32
  %v135 = insertelement <8 x float> poison, float %v132, i64 0
  %v136 = shufflevector <8 x float> %v135, <8 x float> poison, <8 x i32> zeroinitializer
  %v137 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v136, <8 x float> %v134, <8 x float> %v97)
  call void asm sideeffect "", "x,x"(<8 x float> %v136, <8 x float> %v137)
  store <8 x float> %v137, ptr %v1, align 32
  %v138 = getelementptr i8, ptr %p1, i64 224
  %v139 = load <8 x float>, ptr %v138, align 32
  %v140 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v136, <8 x float> %v139, <8 x float> %v100)
  call void asm sideeffect "", "x,x"(<8 x float> %v136, <8 x float> %v140)
  store <8 x float> %v140, ptr %v2, align 32
  %v141 = getelementptr i8, ptr %p0, i64 52
  %v142 = load float, ptr %v141, align 4
  %v143 = insertelement <8 x float> poison, float %v142, i64 0
  %v144 = shufflevector <8 x float> %v143, <8 x float> poison, <8 x i32> zeroinitializer
  %v145 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v144, <8 x float> %v134, <8 x float> %v105)
  call void asm sideeffect "", "x,x"(<8 x float> %v144, <8 x float> %v145)
  store <8 x float> %v145, ptr %v3, align 32
  %v146 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v144, <8 x float> %v139, <8 x float> %v106)
  call void asm sideeffect "", "x,x"(<8 x float> %v144, <8 x float> %v146)
  store <8 x float> %v146, ptr %v4, align 32
  %v147 = getelementptr i8, ptr %p0, i64 92
  %v148 = load float, ptr %v147, align 4
  %v149 = insertelement <8 x float> poison, float %v148, i64 0
  %v150 = shufflevector <8 x float> %v149, <8 x float> poison, <8 x i32> zeroinitializer
  %v151 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v150, <8 x float> %v134, <8 x float> %v111)
  call void asm sideeffect "", "x,x"(<8 x float> %v150, <8 x float> %v151)
  store <8 x float> %v151, ptr %v5, align 32
  %v152 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v150, <8 x float> %v139, <8 x float> %v112)
  call void asm sideeffect "", "x,x"(<8 x float> %v150, <8 x float> %v152)
  store <8 x float> %v152, ptr %v6, align 32
  %v153 = getelementptr i8, ptr %p0, i64 132
  %v154 = load float, ptr %v153, align 4
  %v155 = insertelement <8 x float> poison, float %v154, i64 0
  %v156 = shufflevector <8 x float> %v155, <8 x float> poison, <8 x i32> zeroinitializer
  %v157 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v156, <8 x float> %v134, <8 x float> %v117)
  call void asm sideeffect "", "x,x"(<8 x float> %v156, <8 x float> %v157)
  store <8 x float> %v157, ptr %v7, align 32
  %v158 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v156, <8 x float> %v139, <8 x float> %v118)
  call void asm sideeffect "", "x,x"(<8 x float> %v156, <8 x float> %v158)
  store <8 x float> %v158, ptr %v8, align 32
  %v159 = getelementptr i8, ptr %p0, i64 172
  %v160 = load float, ptr %v159, align 4
  %v161 = insertelement <8 x float> poison, float %v160, i64 0
  %v162 = shufflevector <8 x float> %v161, <8 x float> poison, <8 x i32> zeroinitializer
  %v163 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v162, <8 x float> %v134, <8 x float> %v123)
  call void asm sideeffect "", "x,x"(<8 x float> %v162, <8 x float> %v163)
  store <8 x float> %v163, ptr %v9, align 32
  %v164 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v162, <8 x float> %v139, <8 x float> %v124)
  call void asm sideeffect "", "x,x"(<8 x float> %v162, <8 x float> %v164)
  store <8 x float> %v164, ptr %v10, align 32
  %v165 = getelementptr i8, ptr %p0, i64 212
  %v166 = load float, ptr %v165, align 4
  %v167 = insertelement <8 x float> poison, float %v166, i64 0
  %v168 = shufflevector <8 x float> %v167, <8 x float> poison, <8 x i32> zeroinitializer
  %v169 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v168, <8 x float> %v134, <8 x float> %v129)
  call void asm sideeffect "", "x,x"(<8 x float> %v168, <8 x float> %v169)
  store <8 x float> %v169, ptr %v11, align 32
  %v170 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v168, <8 x float> %v139, <8 x float> %v130)
  call void asm sideeffect "", "x,x"(<8 x float> %v168, <8 x float> %v170)
  store <8 x float> %v170, ptr %v12, align 32
  %v171 = getelementptr i8, ptr %p0, i64 16
  %v172 = load float, ptr %v171, align 4
  %v173 = getelementptr i8, ptr %p1, i64 256
  %v174 = load <8 x float>, ptr %v173, align 32
  %v175 = insertelement <8 x float> poison, float %v172, i64 0
  %v176 = shufflevector <8 x float> %v175, <8 x float> poison, <8 x i32> zeroinitializer
  %v177 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v176, <8 x float> %v174, <8 x float> %v137)
  call void asm sideeffect "", "x,x"(<8 x float> %v176, <8 x float> %v177)
  store <8 x float> %v177, ptr %v1, align 32
  %v178 = getelementptr i8, ptr %p1, i64 288
  %v179 = load <8 x float>, ptr %v178, align 32
  %v180 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v176, <8 x float> %v179, <8 x float> %v140)
  call void asm sideeffect "", "x,x"(<8 x float> %v176, <8 x float> %v180)
  store <8 x float> %v180, ptr %v2, align 32
  %v181 = getelementptr i8, ptr %p0, i64 56
  %v182 = load float, ptr %v181, align 4
  %v183 = insertelement <8 x float> poison, float %v182, i64 0
  %v184 = shufflevector <8 x float> %v183, <8 x float> poison, <8 x i32> zeroinitializer
  %v185 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v184, <8 x float> %v174, <8 x float> %v145)
  call void asm sideeffect "", "x,x"(<8 x float> %v184, <8 x float> %v185)
  store <8 x float> %v185, ptr %v3, align 32
  %v186 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v184, <8 x float> %v179, <8 x float> %v146)
  call void asm sideeffect "", "x,x"(<8 x float> %v184, <8 x float> %v186)
  store <8 x float> %v186, ptr %v4, align 32
  %v187 = getelementptr i8, ptr %p0, i64 96
  %v188 = load float, ptr %v187, align 4
  %v189 = insertelement <8 x float> poison, float %v188, i64 0
  %v190 = shufflevector <8 x float> %v189, <8 x float> poison, <8 x i32> zeroinitializer
  %v191 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v190, <8 x float> %v174, <8 x float> %v151)
  call void asm sideeffect "", "x,x"(<8 x float> %v190, <8 x float> %v191)
  store <8 x float> %v191, ptr %v5, align 32
  %v192 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v190, <8 x float> %v179, <8 x float> %v152)
  call void asm sideeffect "", "x,x"(<8 x float> %v190, <8 x float> %v192)
  store <8 x float> %v192, ptr %v6, align 32
  %v193 = getelementptr i8, ptr %p0, i64 136
  %v194 = load float, ptr %v193, align 4
  %v195 = insertelement <8 x float> poison, float %v194, i64 0
  %v196 = shufflevector <8 x float> %v195, <8 x float> poison, <8 x i32> zeroinitializer
  %v197 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v196, <8 x float> %v174, <8 x float> %v157)
  call void asm sideeffect "", "x,x"(<8 x float> %v196, <8 x float> %v197)
  store <8 x float> %v197, ptr %v7, align 32
  %v198 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v196, <8 x float> %v179, <8 x float> %v158)
  call void asm sideeffect "", "x,x"(<8 x float> %v196, <8 x float> %v198)
  store <8 x float> %v198, ptr %v8, align 32
  %v199 = getelementptr i8, ptr %p0, i64 176
  %v200 = load float, ptr %v199, align 4
  %v201 = insertelement <8 x float> poison, float %v200, i64 0
  %v202 = shufflevector <8 x float> %v201, <8 x float> poison, <8 x i32> zeroinitializer
  %v203 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v202, <8 x float> %v174, <8 x float> %v163)
  call void asm sideeffect "", "x,x"(<8 x float> %v202, <8 x float> %v203)
  store <8 x float> %v203, ptr %v9, align 32
  %v204 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v202, <8 x float> %v179, <8 x float> %v164)
  call void asm sideeffect "", "x,x"(<8 x float> %v202, <8 x float> %v204)
  store <8 x float> %v204, ptr %v10, align 32
  %v205 = getelementptr i8, ptr %p0, i64 216
  %v206 = load float, ptr %v205, align 4
  %v207 = insertelement <8 x float> poison, float %v206, i64 0
  %v208 = shufflevector <8 x float> %v207, <8 x float> poison, <8 x i32> zeroinitializer
  %v209 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v208, <8 x float> %v174, <8 x float> %v169)
  call void asm sideeffect "", "x,x"(<8 x float> %v208, <8 x float> %v209)
  store <8 x float> %v209, ptr %v11, align 32
  %v210 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v208, <8 x float> %v179, <8 x float> %v170)
  call void asm sideeffect "", "x,x"(<8 x float> %v208, <8 x float> %v210)
  store <8 x float> %v210, ptr %v12, align 32
  %v211 = getelementptr i8, ptr %p0, i64 20
  %v212 = load float, ptr %v211, align 4
  %v213 = getelementptr i8, ptr %p1, i64 320
  %v214 = load <8 x float>, ptr %v213, align 32
  %v215 = insertelement <8 x float> poison, float %v212, i64 0
  %v216 = shufflevector <8 x float> %v215, <8 x float> poison, <8 x i32> zeroinitializer
  %v217 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v216, <8 x float> %v214, <8 x float> %v177)
  call void asm sideeffect "", "x,x"(<8 x float> %v216, <8 x float> %v217)
  store <8 x float> %v217, ptr %v1, align 32
  %v218 = getelementptr i8, ptr %p1, i64 352
  %v219 = load <8 x float>, ptr %v218, align 32
  %v220 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v216, <8 x float> %v219, <8 x float> %v180)
  call void asm sideeffect "", "x,x"(<8 x float> %v216, <8 x float> %v220)
  store <8 x float> %v220, ptr %v2, align 32
  %v221 = getelementptr i8, ptr %p0, i64 60
  %v222 = load float, ptr %v221, align 4
  %v223 = insertelement <8 x float> poison, float %v222, i64 0
  %v224 = shufflevector <8 x float> %v223, <8 x float> poison, <8 x i32> zeroinitializer
  %v225 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v224, <8 x float> %v214, <8 x float> %v185)
  call void asm sideeffect "", "x,x"(<8 x float> %v224, <8 x float> %v225)
  store <8 x float> %v225, ptr %v3, align 32
  %v226 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v224, <8 x float> %v219, <8 x float> %v186)
  call void asm sideeffect "", "x,x"(<8 x float> %v224, <8 x float> %v226)
  store <8 x float> %v226, ptr %v4, align 32
  %v227 = getelementptr i8, ptr %p0, i64 100
  %v228 = load float, ptr %v227, align 4
  %v229 = insertelement <8 x float> poison, float %v228, i64 0
  %v230 = shufflevector <8 x float> %v229, <8 x float> poison, <8 x i32> zeroinitializer
  %v231 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v230, <8 x float> %v214, <8 x float> %v191)
  call void asm sideeffect "", "x,x"(<8 x float> %v230, <8 x float> %v231)
  store <8 x float> %v231, ptr %v5, align 32
  %v232 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v230, <8 x float> %v219, <8 x float> %v192)
  call void asm sideeffect "", "x,x"(<8 x float> %v230, <8 x float> %v232)
  store <8 x float> %v232, ptr %v6, align 32
  %v233 = getelementptr i8, ptr %p0, i64 140
  %v234 = load float, ptr %v233, align 4
  %v235 = insertelement <8 x float> poison, float %v234, i64 0
  %v236 = shufflevector <8 x float> %v235, <8 x float> poison, <8 x i32> zeroinitializer
  %v237 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v236, <8 x float> %v214, <8 x float> %v197)
  call void asm sideeffect "", "x,x"(<8 x float> %v236, <8 x float> %v237)
  store <8 x float> %v237, ptr %v7, align 32
  %v238 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v236, <8 x float> %v219, <8 x float> %v198)
  call void asm sideeffect "", "x,x"(<8 x float> %v236, <8 x float> %v238)
  store <8 x float> %v238, ptr %v8, align 32
  %v239 = getelementptr i8, ptr %p0, i64 180
  %v240 = load float, ptr %v239, align 4
  %v241 = insertelement <8 x float> poison, float %v240, i64 0
  %v242 = shufflevector <8 x float> %v241, <8 x float> poison, <8 x i32> zeroinitializer
  %v243 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v242, <8 x float> %v214, <8 x float> %v203)
  call void asm sideeffect "", "x,x"(<8 x float> %v242, <8 x float> %v243)
  store <8 x float> %v243, ptr %v9, align 32
  %v244 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v242, <8 x float> %v219, <8 x float> %v204)
  call void asm sideeffect "", "x,x"(<8 x float> %v242, <8 x float> %v244)
  store <8 x float> %v244, ptr %v10, align 32
  %v245 = getelementptr i8, ptr %p0, i64 220
  %v246 = load float, ptr %v245, align 4
  %v247 = insertelement <8 x float> poison, float %v246, i64 0
  %v248 = shufflevector <8 x float> %v247, <8 x float> poison, <8 x i32> zeroinitializer
  %v249 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v248, <8 x float> %v214, <8 x float> %v209)
  call void asm sideeffect "", "x,x"(<8 x float> %v248, <8 x float> %v249)
  store <8 x float> %v249, ptr %v11, align 32
  %v250 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v248, <8 x float> %v219, <8 x float> %v210)
  call void asm sideeffect "", "x,x"(<8 x float> %v248, <8 x float> %v250)
  store <8 x float> %v250, ptr %v12, align 32
  %v251 = getelementptr i8, ptr %p0, i64 24
  %v252 = load float, ptr %v251, align 4
  %v253 = getelementptr i8, ptr %p1, i64 384
  %v254 = load <8 x float>, ptr %v253, align 32
  %v255 = insertelement <8 x float> poison, float %v252, i64 0
  %v256 = shufflevector <8 x float> %v255, <8 x float> poison, <8 x i32> zeroinitializer
  %v257 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v256, <8 x float> %v254, <8 x float> %v217)
  call void asm sideeffect "", "x,x"(<8 x float> %v256, <8 x float> %v257)
  store <8 x float> %v257, ptr %v1, align 32
  %v258 = getelementptr i8, ptr %p1, i64 416
  %v259 = load <8 x float>, ptr %v258, align 32
  %v260 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v256, <8 x float> %v259, <8 x float> %v220)
  call void asm sideeffect "", "x,x"(<8 x float> %v256, <8 x float> %v260)
  store <8 x float> %v260, ptr %v2, align 32
  %v261 = getelementptr i8, ptr %p0, i64 64
  %v262 = load float, ptr %v261, align 4
  %v263 = insertelement <8 x float> poison, float %v262, i64 0
  %v264 = shufflevector <8 x float> %v263, <8 x float> poison, <8 x i32> zeroinitializer
  %v265 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v264, <8 x float> %v254, <8 x float> %v225)
  call void asm sideeffect "", "x,x"(<8 x float> %v264, <8 x float> %v265)
  store <8 x float> %v265, ptr %v3, align 32
  %v266 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v264, <8 x float> %v259, <8 x float> %v226)
  call void asm sideeffect "", "x,x"(<8 x float> %v264, <8 x float> %v266)
  store <8 x float> %v266, ptr %v4, align 32
  %v267 = getelementptr i8, ptr %p0, i64 104
  %v268 = load float, ptr %v267, align 4
  %v269 = insertelement <8 x float> poison, float %v268, i64 0
  %v270 = shufflevector <8 x float> %v269, <8 x float> poison, <8 x i32> zeroinitializer
  %v271 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v270, <8 x float> %v254, <8 x float> %v231)
  call void asm sideeffect "", "x,x"(<8 x float> %v270, <8 x float> %v271)
  store <8 x float> %v271, ptr %v5, align 32
  %v272 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v270, <8 x float> %v259, <8 x float> %v232)
  call void asm sideeffect "", "x,x"(<8 x float> %v270, <8 x float> %v272)
  store <8 x float> %v272, ptr %v6, align 32
  %v273 = getelementptr i8, ptr %p0, i64 144
  %v274 = load float, ptr %v273, align 4
  %v275 = insertelement <8 x float> poison, float %v274, i64 0
  %v276 = shufflevector <8 x float> %v275, <8 x float> poison, <8 x i32> zeroinitializer
  %v277 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v276, <8 x float> %v254, <8 x float> %v237)
  call void asm sideeffect "", "x,x"(<8 x float> %v276, <8 x float> %v277)
  store <8 x float> %v277, ptr %v7, align 32
  %v278 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v276, <8 x float> %v259, <8 x float> %v238)
  call void asm sideeffect "", "x,x"(<8 x float> %v276, <8 x float> %v278)
  store <8 x float> %v278, ptr %v8, align 32
  %v279 = getelementptr i8, ptr %p0, i64 184
  %v280 = load float, ptr %v279, align 4
  %v281 = insertelement <8 x float> poison, float %v280, i64 0
  %v282 = shufflevector <8 x float> %v281, <8 x float> poison, <8 x i32> zeroinitializer
  %v283 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v282, <8 x float> %v254, <8 x float> %v243)
  call void asm sideeffect "", "x,x"(<8 x float> %v282, <8 x float> %v283)
  store <8 x float> %v283, ptr %v9, align 32
  %v284 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v282, <8 x float> %v259, <8 x float> %v244)
  call void asm sideeffect "", "x,x"(<8 x float> %v282, <8 x float> %v284)
  store <8 x float> %v284, ptr %v10, align 32
  %v285 = getelementptr i8, ptr %p0, i64 224
  %v286 = load float, ptr %v285, align 4
  %v287 = insertelement <8 x float> poison, float %v286, i64 0
  %v288 = shufflevector <8 x float> %v287, <8 x float> poison, <8 x i32> zeroinitializer
  %v289 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v288, <8 x float> %v254, <8 x float> %v249)
  call void asm sideeffect "", "x,x"(<8 x float> %v288, <8 x float> %v289)
  store <8 x float> %v289, ptr %v11, align 32
  %v290 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v288, <8 x float> %v259, <8 x float> %v250)
  call void asm sideeffect "", "x,x"(<8 x float> %v288, <8 x float> %v290)
  store <8 x float> %v290, ptr %v12, align 32
  %v291 = getelementptr i8, ptr %p0, i64 28
  %v292 = load float, ptr %v291, align 4
  %v293 = getelementptr i8, ptr %p1, i64 448
  %v294 = load <8 x float>, ptr %v293, align 32
  %v295 = insertelement <8 x float> poison, float %v292, i64 0
  %v296 = shufflevector <8 x float> %v295, <8 x float> poison, <8 x i32> zeroinitializer
  %v297 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v296, <8 x float> %v294, <8 x float> %v257)
  call void asm sideeffect "", "x,x"(<8 x float> %v296, <8 x float> %v297)
  store <8 x float> %v297, ptr %v1, align 32
  %v298 = getelementptr i8, ptr %p1, i64 480
  %v299 = load <8 x float>, ptr %v298, align 32
  %v300 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v296, <8 x float> %v299, <8 x float> %v260)
  call void asm sideeffect "", "x,x"(<8 x float> %v296, <8 x float> %v300)
  store <8 x float> %v300, ptr %v2, align 32
  %v301 = getelementptr i8, ptr %p0, i64 68
  %v302 = load float, ptr %v301, align 4
  %v303 = insertelement <8 x float> poison, float %v302, i64 0
  %v304 = shufflevector <8 x float> %v303, <8 x float> poison, <8 x i32> zeroinitializer
  %v305 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v304, <8 x float> %v294, <8 x float> %v265)
  call void asm sideeffect "", "x,x"(<8 x float> %v304, <8 x float> %v305)
  store <8 x float> %v305, ptr %v3, align 32
  %v306 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v304, <8 x float> %v299, <8 x float> %v266)
  call void asm sideeffect "", "x,x"(<8 x float> %v304, <8 x float> %v306)
  store <8 x float> %v306, ptr %v4, align 32
  %v307 = getelementptr i8, ptr %p0, i64 108
  %v308 = load float, ptr %v307, align 4
  %v309 = insertelement <8 x float> poison, float %v308, i64 0
  %v310 = shufflevector <8 x float> %v309, <8 x float> poison, <8 x i32> zeroinitializer
  %v311 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v310, <8 x float> %v294, <8 x float> %v271)
  call void asm sideeffect "", "x,x"(<8 x float> %v310, <8 x float> %v311)
  store <8 x float> %v311, ptr %v5, align 32
  %v312 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v310, <8 x float> %v299, <8 x float> %v272)
  call void asm sideeffect "", "x,x"(<8 x float> %v310, <8 x float> %v312)
  store <8 x float> %v312, ptr %v6, align 32
  %v313 = getelementptr i8, ptr %p0, i64 148
  %v314 = load float, ptr %v313, align 4
  %v315 = insertelement <8 x float> poison, float %v314, i64 0
  %v316 = shufflevector <8 x float> %v315, <8 x float> poison, <8 x i32> zeroinitializer
  %v317 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v316, <8 x float> %v294, <8 x float> %v277)
  call void asm sideeffect "", "x,x"(<8 x float> %v316, <8 x float> %v317)
  store <8 x float> %v317, ptr %v7, align 32
  %v318 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v316, <8 x float> %v299, <8 x float> %v278)
  call void asm sideeffect "", "x,x"(<8 x float> %v316, <8 x float> %v318)
  store <8 x float> %v318, ptr %v8, align 32
  %v319 = getelementptr i8, ptr %p0, i64 188
  %v320 = load float, ptr %v319, align 4
  %v321 = insertelement <8 x float> poison, float %v320, i64 0
  %v322 = shufflevector <8 x float> %v321, <8 x float> poison, <8 x i32> zeroinitializer
  %v323 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v322, <8 x float> %v294, <8 x float> %v283)
  call void asm sideeffect "", "x,x"(<8 x float> %v322, <8 x float> %v323)
  store <8 x float> %v323, ptr %v9, align 32
  %v324 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v322, <8 x float> %v299, <8 x float> %v284)
  call void asm sideeffect "", "x,x"(<8 x float> %v322, <8 x float> %v324)
  store <8 x float> %v324, ptr %v10, align 32
  %v325 = getelementptr i8, ptr %p0, i64 228
  %v326 = load float, ptr %v325, align 4
  %v327 = insertelement <8 x float> poison, float %v326, i64 0
  %v328 = shufflevector <8 x float> %v327, <8 x float> poison, <8 x i32> zeroinitializer
  %v329 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v328, <8 x float> %v294, <8 x float> %v289)
  call void asm sideeffect "", "x,x"(<8 x float> %v328, <8 x float> %v329)
  store <8 x float> %v329, ptr %v11, align 32
  %v330 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v328, <8 x float> %v299, <8 x float> %v290)
  call void asm sideeffect "", "x,x"(<8 x float> %v328, <8 x float> %v330)
  store <8 x float> %v330, ptr %v12, align 32
  %v331 = getelementptr i8, ptr %p0, i64 32
  %v332 = load float, ptr %v331, align 4
  %v333 = getelementptr i8, ptr %p1, i64 512
  %v334 = load <8 x float>, ptr %v333, align 32
  %v335 = insertelement <8 x float> poison, float %v332, i64 0
  %v336 = shufflevector <8 x float> %v335, <8 x float> poison, <8 x i32> zeroinitializer
  %v337 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v336, <8 x float> %v334, <8 x float> %v297)
  call void asm sideeffect "", "x,x"(<8 x float> %v336, <8 x float> %v337)
  store <8 x float> %v337, ptr %v1, align 32
  %v338 = getelementptr i8, ptr %p1, i64 544
  %v339 = load <8 x float>, ptr %v338, align 32
  %v340 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v336, <8 x float> %v339, <8 x float> %v300)
  call void asm sideeffect "", "x,x"(<8 x float> %v336, <8 x float> %v340)
  store <8 x float> %v340, ptr %v2, align 32
  %v341 = getelementptr i8, ptr %p0, i64 72
  %v342 = load float, ptr %v341, align 4
  %v343 = insertelement <8 x float> poison, float %v342, i64 0
  %v344 = shufflevector <8 x float> %v343, <8 x float> poison, <8 x i32> zeroinitializer
  %v345 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v344, <8 x float> %v334, <8 x float> %v305)
  call void asm sideeffect "", "x,x"(<8 x float> %v344, <8 x float> %v345)
  store <8 x float> %v345, ptr %v3, align 32
  %v346 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v344, <8 x float> %v339, <8 x float> %v306)
  call void asm sideeffect "", "x,x"(<8 x float> %v344, <8 x float> %v346)
  store <8 x float> %v346, ptr %v4, align 32
  %v347 = getelementptr i8, ptr %p0, i64 112
  %v348 = load float, ptr %v347, align 4
  %v349 = insertelement <8 x float> poison, float %v348, i64 0
  %v350 = shufflevector <8 x float> %v349, <8 x float> poison, <8 x i32> zeroinitializer
  %v351 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v350, <8 x float> %v334, <8 x float> %v311)
  call void asm sideeffect "", "x,x"(<8 x float> %v350, <8 x float> %v351)
  store <8 x float> %v351, ptr %v5, align 32
  %v352 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v350, <8 x float> %v339, <8 x float> %v312)
  call void asm sideeffect "", "x,x"(<8 x float> %v350, <8 x float> %v352)
  store <8 x float> %v352, ptr %v6, align 32
  %v353 = getelementptr i8, ptr %p0, i64 152
  %v354 = load float, ptr %v353, align 4
  %v355 = insertelement <8 x float> poison, float %v354, i64 0
  %v356 = shufflevector <8 x float> %v355, <8 x float> poison, <8 x i32> zeroinitializer
  %v357 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v356, <8 x float> %v334, <8 x float> %v317)
  call void asm sideeffect "", "x,x"(<8 x float> %v356, <8 x float> %v357)
  store <8 x float> %v357, ptr %v7, align 32
  %v358 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v356, <8 x float> %v339, <8 x float> %v318)
  call void asm sideeffect "", "x,x"(<8 x float> %v356, <8 x float> %v358)
  store <8 x float> %v358, ptr %v8, align 32
  %v359 = getelementptr i8, ptr %p0, i64 192
  %v360 = load float, ptr %v359, align 4
  %v361 = insertelement <8 x float> poison, float %v360, i64 0
  %v362 = shufflevector <8 x float> %v361, <8 x float> poison, <8 x i32> zeroinitializer
  %v363 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v362, <8 x float> %v334, <8 x float> %v323)
  call void asm sideeffect "", "x,x"(<8 x float> %v362, <8 x float> %v363)
  store <8 x float> %v363, ptr %v9, align 32
  %v364 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v362, <8 x float> %v339, <8 x float> %v324)
  call void asm sideeffect "", "x,x"(<8 x float> %v362, <8 x float> %v364)
  store <8 x float> %v364, ptr %v10, align 32
  %v365 = getelementptr i8, ptr %p0, i64 232
  %v366 = load float, ptr %v365, align 4
  %v367 = insertelement <8 x float> poison, float %v366, i64 0
  %v368 = shufflevector <8 x float> %v367, <8 x float> poison, <8 x i32> zeroinitializer
  %v369 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v368, <8 x float> %v334, <8 x float> %v329)
  call void asm sideeffect "", "x,x"(<8 x float> %v368, <8 x float> %v369)
  store <8 x float> %v369, ptr %v11, align 32
  %v370 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v368, <8 x float> %v339, <8 x float> %v330)
  call void asm sideeffect "", "x,x"(<8 x float> %v368, <8 x float> %v370)
  store <8 x float> %v370, ptr %v12, align 32
  %v371 = getelementptr i8, ptr %p0, i64 36
  %v372 = load float, ptr %v371, align 4
  %v373 = getelementptr i8, ptr %p1, i64 576
  %v374 = load <8 x float>, ptr %v373, align 32
  %v375 = insertelement <8 x float> poison, float %v372, i64 0
  %v376 = shufflevector <8 x float> %v375, <8 x float> poison, <8 x i32> zeroinitializer
  %v377 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v376, <8 x float> %v374, <8 x float> %v337)
  call void asm sideeffect "", "x,x"(<8 x float> %v376, <8 x float> %v377)
  store <8 x float> %v377, ptr %v1, align 32
  %v378 = getelementptr i8, ptr %p1, i64 608
  %v379 = load <8 x float>, ptr %v378, align 32
  %v380 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v376, <8 x float> %v379, <8 x float> %v340)
  call void asm sideeffect "", "x,x"(<8 x float> %v376, <8 x float> %v380)
  store <8 x float> %v380, ptr %v2, align 32
  %v381 = getelementptr i8, ptr %p0, i64 76
  %v382 = load float, ptr %v381, align 4
  %v383 = insertelement <8 x float> poison, float %v382, i64 0
  %v384 = shufflevector <8 x float> %v383, <8 x float> poison, <8 x i32> zeroinitializer
  %v385 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v384, <8 x float> %v374, <8 x float> %v345)
  call void asm sideeffect "", "x,x"(<8 x float> %v384, <8 x float> %v385)
  store <8 x float> %v385, ptr %v3, align 32
  %v386 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v384, <8 x float> %v379, <8 x float> %v346)
  call void asm sideeffect "", "x,x"(<8 x float> %v384, <8 x float> %v386)
  store <8 x float> %v386, ptr %v4, align 32
  %v387 = getelementptr i8, ptr %p0, i64 116
  %v388 = load float, ptr %v387, align 4
  %v389 = insertelement <8 x float> poison, float %v388, i64 0
  %v390 = shufflevector <8 x float> %v389, <8 x float> poison, <8 x i32> zeroinitializer
  %v391 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v390, <8 x float> %v374, <8 x float> %v351)
  call void asm sideeffect "", "x,x"(<8 x float> %v390, <8 x float> %v391)
  store <8 x float> %v391, ptr %v5, align 32
  %v392 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v390, <8 x float> %v379, <8 x float> %v352)
  call void asm sideeffect "", "x,x"(<8 x float> %v390, <8 x float> %v392)
  store <8 x float> %v392, ptr %v6, align 32
  %v393 = getelementptr i8, ptr %p0, i64 156
  %v394 = load float, ptr %v393, align 4
  %v395 = insertelement <8 x float> poison, float %v394, i64 0
  %v396 = shufflevector <8 x float> %v395, <8 x float> poison, <8 x i32> zeroinitializer
  %v397 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v396, <8 x float> %v374, <8 x float> %v357)
  call void asm sideeffect "", "x,x"(<8 x float> %v396, <8 x float> %v397)
  store <8 x float> %v397, ptr %v7, align 32
  %v398 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v396, <8 x float> %v379, <8 x float> %v358)
  call void asm sideeffect "", "x,x"(<8 x float> %v396, <8 x float> %v398)
  store <8 x float> %v398, ptr %v8, align 32
  %v399 = getelementptr i8, ptr %p0, i64 196
  %v400 = load float, ptr %v399, align 4
  %v401 = insertelement <8 x float> poison, float %v400, i64 0
  %v402 = shufflevector <8 x float> %v401, <8 x float> poison, <8 x i32> zeroinitializer
  %v403 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v402, <8 x float> %v374, <8 x float> %v363)
  call void asm sideeffect "", "x,x"(<8 x float> %v402, <8 x float> %v403)
  store <8 x float> %v403, ptr %v9, align 32
  %v404 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v402, <8 x float> %v379, <8 x float> %v364)
  call void asm sideeffect "", "x,x"(<8 x float> %v402, <8 x float> %v404)
  store <8 x float> %v404, ptr %v10, align 32
  %v405 = getelementptr i8, ptr %p0, i64 236
  %v406 = load float, ptr %v405, align 4
  %v407 = insertelement <8 x float> poison, float %v406, i64 0
  %v408 = shufflevector <8 x float> %v407, <8 x float> poison, <8 x i32> zeroinitializer
  %v409 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v408, <8 x float> %v374, <8 x float> %v369)
  call void asm sideeffect "", "x,x"(<8 x float> %v408, <8 x float> %v409)
  store <8 x float> %v409, ptr %v11, align 32
  %v410 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v408, <8 x float> %v379, <8 x float> %v370)
  call void asm sideeffect "", "x,x"(<8 x float> %v408, <8 x float> %v410)
  store <8 x float> %v410, ptr %v12, align 32
  store <8 x float> %v377, ptr %p2, align 32
  %v411 = getelementptr i8, ptr %p2, i64 64
  store <8 x float> %v385, ptr %v411, align 32
  %v412 = getelementptr i8, ptr %p2, i64 128
  store <8 x float> %v391, ptr %v412, align 32
  %v413 = getelementptr i8, ptr %p2, i64 192
  store <8 x float> %v397, ptr %v413, align 32
  %v414 = getelementptr i8, ptr %p2, i64 256
  store <8 x float> %v403, ptr %v414, align 32
  %v415 = getelementptr i8, ptr %p2, i64 320
  store <8 x float> %v409, ptr %v415, align 32
  %v416 = getelementptr i8, ptr %p2, i64 32
  store <8 x float> %v380, ptr %v416, align 32
  %v417 = getelementptr i8, ptr %p2, i64 96
  store <8 x float> %v386, ptr %v417, align 32
  %v418 = getelementptr i8, ptr %p2, i64 160
  store <8 x float> %v392, ptr %v418, align 32
  %v419 = getelementptr i8, ptr %p2, i64 224
  store <8 x float> %v398, ptr %v419, align 32
  %v420 = getelementptr i8, ptr %p2, i64 288
  store <8 x float> %v404, ptr %v420, align 32
  %v421 = getelementptr i8, ptr %p2, i64 352
  store <8 x float> %v410, ptr %v421, align 32
  ret void
}

define void @product(ptr %x0, ptr %x1, i32 %x2) nounwind {
entry:
  %v1 = load ptr, ptr %x0, align 8
  %v2 = getelementptr ptr, ptr %x0, i64 1
  %v3 = load ptr, ptr %v2, align 8
  %v4 = getelementptr ptr, ptr %x0, i64 2
  %v5 = load ptr, ptr %v4, align 8
  %v6 = getelementptr i8, ptr %x1, i64 0
  call void @product.main(ptr %v1, ptr %v3, ptr %v5, ptr %x1, ptr %v6, i32 %x2)
  ret void
}

!0 = distinct !{!0, !1, !2}
!1 = !{!"llvm.loop.unroll.disable"}
!2 = !{!"llvm.loop.vectorize.enable", i1 false}
