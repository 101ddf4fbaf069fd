declare i1 @llvm.vector.reduce.or.v8i1(<8 x i1>)
declare <8 x float> @llvm.masked.load.v8f32.p0(ptr, i32 immarg, <8 x i1>, <8 x float>)
declare void @llvm.prefetch.p0(ptr, i32, i32, i32)
declare <8 x float> @llvm.fma.v8f32(<8 x float>, <8 x float>, <8 x float>)
define internal void @convolution.main(ptr noalias align 64 %p0, ptr noalias align 64 %p1, ptr noalias align 64 %p2, ptr %workspace, ptr %slice, i32 %threads) nounwind {
entry:
  %v3 = alloca [972 x i8], align 64
  %v36 = alloca <8 x float>, align 32
  %v37 = alloca <8 x float>, align 32
  %v38 = alloca <8 x float>, align 32
  %v39 = alloca <8 x float>, align 32
  %v40 = alloca <8 x float>, align 32
  %v41 = alloca <8 x float>, align 32
  %v42 = alloca <8 x float>, align 32
  %v43 = alloca <8 x float>, align 32
  %v10 = add <8 x i32> splat (i32 1), <i32 0, i32 -1, i32 -2, i32 -3, i32 -4, i32 -5, i32 -6, i32 -7>
  %v11 = icmp sle <8 x i32> %v10, zeroinitializer
  %v15 = call i1 @llvm.vector.reduce.or.v8i1(<8 x i1> %v11)
  %v603 = getelementptr i8, ptr %p1, i64 1728
  br label %b1
b1:
  %v54 = phi ptr [ %p1, %entry ], [ %v602, %b594 ]
  %v523 = phi ptr [ %p2, %entry ], [ %v604, %b594 ]
  %v32 = getelementptr i8, ptr %v3, i64 972
  br label %b4
b4:
  %v6 = phi ptr [ %v3, %b1 ], [ %v31, %b23 ]
  %v12 = phi ptr [ %p0, %b1 ], [ %v33, %b23 ]
  store <8 x float> splat (float 0x0000000000000000), ptr %v6, align 4
  %v7 = getelementptr i8, ptr %v6, i64 32
  store float 0x0000000000000000, ptr %v7, align 4
  %v25 = getelementptr i8, ptr %v12, i64 196
  br label %b8
b8:
  %v13 = phi ptr [ %v12, %b4 ], [ %v24, %b8 ]
  %v19 = phi ptr [ %v6, %b4 ], [ %v26, %b8 ]
  %v14 = getelementptr i8, ptr %v13, i64 -4
  %v16 = select i1 %v15, ptr %v14, ptr %p0
  %v17 = call <8 x float> @llvm.masked.load.v8f32.p0(ptr %v16, i32 4, <8 x i1> %v11, <8 x float> zeroinitializer)
  %v18 = select <8 x i1> %v11, <8 x float> %v17, <8 x float> splat (float 0x0000000000000000)
  %v20 = getelementptr i8, ptr %v19, i64 36
  store <8 x float> %v18, ptr %v20, align 4
  %v21 = getelementptr i8, ptr %v19, i64 68
  store float 0x0000000000000000, ptr %v21, align 4
  %v24 = getelementptr i8, ptr %v13, i64 28
  %v26 = getelementptr i8, ptr %v19, i64 36
  %v22 = icmp ne ptr %v24, %v25
  br i1 %v22, label %b8, label %b23, !llvm.loop !0
b23:
  %v27 = getelementptr i8, ptr %v6, i64 288
  store <8 x float> splat (float 0x0000000000000000), ptr %v27, align 4
  %v28 = getelementptr i8, ptr %v6, i64 320
  store float 0x0000000000000000, ptr %v28, align 4
  %v31 = getelementptr i8, ptr %v6, i64 324
  %v33 = getelementptr i8, ptr %v12, i64 196
  %v29 = icmp ne ptr %v31, %v32
  br i1 %v29, label %b4, label %b30, !llvm.loop !0
b30:
  %v596 = getelementptr i8, ptr %v54, i64 448
  br label %b34
b34:
  %v55 = phi ptr [ %v54, %b30 ], [ %v595, %b367 ]
  %v60 = phi ptr [ %v3, %b30 ], [ %v597, %b367 ]
  %v524 = phi ptr [ %v523, %b30 ], [ %v598, %b367 ]
  %v35 = phi i64 [ 0, %b30 ], [ %v599, %b367 ]
  store <8 x float> splat (float 0x0000000000000000), ptr %v36, align 32
  store <8 x float> splat (float 0x0000000000000000), ptr %v37, align 32
  store <8 x float> splat (float 0x0000000000000000), ptr %v38, align 32
  store <8 x float> splat (float 0x0000000000000000), ptr %v39, align 32
  store <8 x float> splat (float 0x0000000000000000), ptr %v40, align 32
  store <8 x float> splat (float 0x0000000000000000), ptr %v41, align 32
  store <8 x float> splat (float 0x0000000000000000), ptr %v42, align 32
  store <8 x float> splat (float 0x0000000000000000), ptr %v43, align 32
  %v44 = mul nsw i64 %v35, -1
  %v45 = icmp sle i64 %v44, -1
  %v46 = icmp slt i64 %v35, 6
  %v47 = and i1 %v45, %v46
  br i1 %v47, label %b48, label %b49
b48:
  %v205 = getelementptr i8, ptr %v55, i64 864
  br label %b50
b50:
  %v56 = phi ptr [ %v55, %b48 ], [ %v204, %b197 ]
  %v61 = phi ptr [ %v60, %b48 ], [ %v206, %b197 ]
  %v64 = phi ptr [ %v54, %b48 ], [ %v207, %b197 ]
  %v199 = getelementptr i8, ptr %v56, i64 288
  br label %b52
b52:
  %v57 = phi ptr [ %v56, %b50 ], [ %v198, %b52 ]
  %v62 = phi ptr [ %v61, %b50 ], [ %v200, %b52 ]
  %v65 = phi ptr [ %v64, %b50 ], [ %v201, %b52 ]
  %v58 = getelementptr i8, ptr %v57, i64 864
  call void @llvm.prefetch.p0(ptr %v58, i32 0, i32 2, i32 1)
  %v59 = load <8 x float>, ptr %v36, align 32
  %v63 = load <8 x float>, ptr %v62, align 4
  %v66 = load float, ptr %v65, align 4
  %v67 = insertelement <8 x float> poison, float %v66, i64 0
  %v68 = shufflevector <8 x float> %v67, <8 x float> poison, <8 x i32> zeroinitializer
  %v69 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v63, <8 x float> %v68, <8 x float> %v59)
  call void asm sideeffect "", "x,x"(<8 x float> %v68, <8 x float> %v69)
  store <8 x float> %v69, ptr %v36, align 32
  %v70 = load <8 x float>, ptr %v37, align 32
  %v71 = getelementptr i8, ptr %v65, i64 4
  %v72 = load float, ptr %v71, align 4
  %v73 = insertelement <8 x float> poison, float %v72, i64 0
  %v74 = shufflevector <8 x float> %v73, <8 x float> poison, <8 x i32> zeroinitializer
  %v75 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v63, <8 x float> %v74, <8 x float> %v70)
  call void asm sideeffect "", "x,x"(<8 x float> %v74, <8 x float> %v75)
  store <8 x float> %v75, ptr %v37, align 32
  %v76 = load <8 x float>, ptr %v38, align 32
  %v77 = getelementptr i8, ptr %v65, i64 8
  %v78 = load float, ptr %v77, align 4
  %v79 = insertelement <8 x float> poison, float %v78, i64 0
  %v80 = shufflevector <8 x float> %v79, <8 x float> poison, <8 x i32> zeroinitializer
  %v81 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v63, <8 x float> %v80, <8 x float> %v76)
  call void asm sideeffect "", "x,x"(<8 x float> %v80, <8 x float> %v81)
  store <8 x float> %v81, ptr %v38, align 32
  %v82 = load <8 x float>, ptr %v39, align 32
  %v83 = getelementptr i8, ptr %v65, i64 12
  %v84 = load float, ptr %v83, align 4
  %v85 = insertelement <8 x float> poison, float %v84, i64 0
  %v86 = shufflevector <8 x float> %v85, <8 x float> poison, <8 x i32> zeroinitializer
  %v87 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v63, <8 x float> %v86, <8 x float> %v82)
  call void asm sideeffect "", "x,x"(<8 x float> %v86, <8 x float> %v87)
  store <8 x float> %v87, ptr %v39, align 32
  %v88 = load <8 x float>, ptr %v40, align 32
  %v89 = getelementptr i8, ptr %v65, i64 16
  %v90 = load float, ptr %v89, align 4
  %v91 = insertelement <8 x float> poison, float %v90, i64 0
  %v92 = shufflevector <8 x float> %v91, <8 x float> poison, <8 x i32> zeroinitializer
  %v93 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v63, <8 x float> %v92, <8 x float> %v88)
  call void asm sideeffect "", "x,x"(<8 x float> %v92, <8 x float> %v93)
  store <8 x float> %v93, ptr %v40, align 32
  %v94 = load <8 x float>, ptr %v41, align 32
  %v95 = getelementptr i8, ptr %v65, i64 20
  %v96 = load float, ptr %v95, align 4
  %v97 = insertelement <8 x float> poison, float %v96, i64 0
  %v98 = shufflevector <8 x float> %v97, <8 x float> poison, <8 x i32> zeroinitializer
  %v99 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v63, <8 x float> %v98, <8 x float> %v94)
  call void asm sideeffect "", "x,x"(<8 x float> %v98, <8 x float> %v99)
  store <8 x float> %v99, ptr %v41, align 32
  %v100 = load <8 x float>, ptr %v42, align 32
  %v101 = getelementptr i8, ptr %v65, i64 24
  %v102 = load float, ptr %v101, align 4
  %v103 = insertelement <8 x float> poison, float %v102, i64 0
  %v104 = shufflevector <8 x float> %v103, <8 x float> poison, <8 x i32> zeroinitializer
  %v105 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v63, <8 x float> %v104, <8 x float> %v100)
  call void asm sideeffect "", "x,x"(<8 x float> %v104, <8 x float> %v105)
  store <8 x float> %v105, ptr %v42, align 32
  %v106 = load <8 x float>, ptr %v43, align 32
  %v107 = getelementptr i8, ptr %v65, i64 28
  %v108 = load float, ptr %v107, align 4
  %v109 = insertelement <8 x float> poison, float %v108, i64 0
  %v110 = shufflevector <8 x float> %v109, <8 x float> poison, <8 x i32> zeroinitializer
  %v111 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v63, <8 x float> %v110, <8 x float> %v106)
  call void asm sideeffect "", "x,x"(<8 x float> %v110, <8 x float> %v111)
  store <8 x float> %v111, ptr %v43, align 32
  %v112 = getelementptr i8, ptr %v62, i64 324
  %v113 = load <8 x float>, ptr %v112, align 4
  %v114 = getelementptr i8, ptr %v65, i64 32
  %v115 = load float, ptr %v114, align 4
  %v116 = insertelement <8 x float> poison, float %v115, i64 0
  %v117 = shufflevector <8 x float> %v116, <8 x float> poison, <8 x i32> zeroinitializer
  %v118 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v113, <8 x float> %v117, <8 x float> %v69)
  call void asm sideeffect "", "x,x"(<8 x float> %v117, <8 x float> %v118)
  store <8 x float> %v118, ptr %v36, align 32
  %v119 = getelementptr i8, ptr %v65, i64 36
  %v120 = load float, ptr %v119, align 4
  %v121 = insertelement <8 x float> poison, float %v120, i64 0
  %v122 = shufflevector <8 x float> %v121, <8 x float> poison, <8 x i32> zeroinitializer
  %v123 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v113, <8 x float> %v122, <8 x float> %v75)
  call void asm sideeffect "", "x,x"(<8 x float> %v122, <8 x float> %v123)
  store <8 x float> %v123, ptr %v37, align 32
  %v124 = getelementptr i8, ptr %v65, i64 40
  %v125 = load float, ptr %v124, align 4
  %v126 = insertelement <8 x float> poison, float %v125, i64 0
  %v127 = shufflevector <8 x float> %v126, <8 x float> poison, <8 x i32> zeroinitializer
  %v128 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v113, <8 x float> %v127, <8 x float> %v81)
  call void asm sideeffect "", "x,x"(<8 x float> %v127, <8 x float> %v128)
  store <8 x float> %v128, ptr %v38, align 32
  %v129 = getelementptr i8, ptr %v65, i64 44
  %v130 = load float, ptr %v129, align 4
  %v131 = insertelement <8 x float> poison, float %v130, i64 0
  %v132 = shufflevector <8 x float> %v131, <8 x float> poison, <8 x i32> zeroinitializer
  %v133 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v113, <8 x float> %v132, <8 x float> %v87)
  call void asm sideeffect "", "x,x"(<8 x float> %v132, <8 x float> %v133)
  store <8 x float> %v133, ptr %v39, align 32
  %v134 = getelementptr i8, ptr %v65, i64 48
  %v135 = load float, ptr %v134, align 4
  %v136 = insertelement <8 x float> poison, float %v135, i64 0
  %v137 = shufflevector <8 x float> %v136, <8 x float> poison, <8 x i32> zeroinitializer
  %v138 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v113, <8 x float> %v137, <8 x float> %v93)
  call void asm sideeffect "", "x,x"(<8 x float> %v137, <8 x float> %v138)
  store <8 x float> %v138, ptr %v40, align 32
  %v139 = getelementptr i8, ptr %v65, i64 52
  %v140 = load float, ptr %v139, align 4
  %v141 = insertelement <8 x float> poison, float %v140, i64 0
  %v142 = shufflevector <8 x float> %v141, <8 x float> poison, <8 x i32> zeroinitializer
  %v143 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v113, <8 x float> %v142, <8 x float> %v99)
  call void asm sideeffect "", "x,x"(<8 x float> %v142, <8 x float> %v143)
  store <8 x float> %v143, ptr %v41, align 32
  %v144 = getelementptr i8, ptr %v65, i64 56
  %v145 = load float, ptr %v144, align 4
  %v146 = insertelement <8 x float> poison, float %v145, i64 0
  %v147 = shufflevector <8 x float> %v146, <8 x float> poison, <8 x i32> zeroinitializer
  %v148 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v113, <8 x float> %v147, <8 x float> %v105)
  call void asm sideeffect "", "x,x"(<8 x float> %v147, <8 x float> %v148)
  store <8 x float> %v148, ptr %v42, align 32
  %v149 = getelementptr i8, ptr %v65, i64 60
  %v150 = load float, ptr %v149, align 4
  %v151 = insertelement <8 x float> poison, float %v150, i64 0
  %v152 = shufflevector <8 x float> %v151, <8 x float> poison, <8 x i32> zeroinitializer
  %v153 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v113, <8 x float> %v152, <8 x float> %v111)
  call void asm sideeffect "", "x,x"(<8 x float> %v152, <8 x float> %v153)
  store <8 x float> %v153, ptr %v43, align 32
  %v154 = getelementptr i8, ptr %v62, i64 648
  %v155 = call <8 x float> @llvm.masked.load.v8f32.p0(ptr %v154, i32 4, <8 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 false>, <8 x float> zeroinitializer)
  %v156 = getelementptr i8, ptr %v65, i64 64
  %v157 = load float, ptr %v156, align 4
  %v158 = insertelement <8 x float> poison, float %v157, i64 0
  %v159 = shufflevector <8 x float> %v158, <8 x float> poison, <8 x i32> zeroinitializer
  %v160 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v155, <8 x float> %v159, <8 x float> %v118)
  call void asm sideeffect "", "x,x"(<8 x float> %v159, <8 x float> %v160)
  store <8 x float> %v160, ptr %v36, align 32
  %v161 = getelementptr i8, ptr %v65, i64 68
  %v162 = load float, ptr %v161, align 4
  %v163 = insertelement <8 x float> poison, float %v162, i64 0
  %v164 = shufflevector <8 x float> %v163, <8 x float> poison, <8 x i32> zeroinitializer
  %v165 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v155, <8 x float> %v164, <8 x float> %v123)
  call void asm sideeffect "", "x,x"(<8 x float> %v164, <8 x float> %v165)
  store <8 x float> %v165, ptr %v37, align 32
  %v166 = getelementptr i8, ptr %v65, i64 72
  %v167 = load float, ptr %v166, align 4
  %v168 = insertelement <8 x float> poison, float %v167, i64 0
  %v169 = shufflevector <8 x float> %v168, <8 x float> poison, <8 x i32> zeroinitializer
  %v170 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v155, <8 x float> %v169, <8 x float> %v128)
  call void asm sideeffect "", "x,x"(<8 x float> %v169, <8 x float> %v170)
  store <8 x float> %v170, ptr %v38, align 32
  %v171 = getelementptr i8, ptr %v65, i64 76
  %v172 = load float, ptr %v171, align 4
  %v173 = insertelement <8 x float> poison, float %v172, i64 0
  %v174 = shufflevector <8 x float> %v173, <8 x float> poison, <8 x i32> zeroinitializer
  %v175 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v155, <8 x float> %v174, <8 x float> %v133)
  call void asm sideeffect "", "x,x"(<8 x float> %v174, <8 x float> %v175)
  store <8 x float> %v175, ptr %v39, align 32
  %v176 = getelementptr i8, ptr %v65, i64 80
  %v177 = load float, ptr %v176, align 4
  %v178 = insertelement <8 x float> poison, float %v177, i64 0
  %v179 = shufflevector <8 x float> %v178, <8 x float> poison, <8 x i32> zeroinitializer
  %v180 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v155, <8 x float> %v179, <8 x float> %v138)
  call void asm sideeffect "", "x,x"(<8 x float> %v179, <8 x float> %v180)
  store <8 x float> %v180, ptr %v40, align 32
  %v181 = getelementptr i8, ptr %v65, i64 84
  %v182 = load float, ptr %v181, align 4
  %v183 = insertelement <8 x float> poison, float %v182, i64 0
  %v184 = shufflevector <8 x float> %v183, <8 x float> poison, <8 x i32> zeroinitializer
  %v185 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v155, <8 x float> %v184, <8 x float> %v143)
  call void asm sideeffect "", "x,x"(<8 x float> %v184, <8 x float> %v185)
  store <8 x float> %v185, ptr %v41, align 32
  %v186 = getelementptr i8, ptr %v65, i64 88
  %v187 = load float, ptr %v186, align 4
  %v188 = insertelement <8 x float> poison, float %v187, i64 0
  %v189 = shufflevector <8 x float> %v188, <8 x float> poison, <8 x i32> zeroinitializer
  %v190 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v155, <8 x float> %v189, <8 x float> %v148)
  call void asm sideeffect "", "x,x"(<8 x float> %v189, <8 x float> %v190)
  store <8 x float> %v190, ptr %v42, align 32
  %v191 = getelementptr i8, ptr %v65, i64 92
  %v192 = load float, ptr %v191, align 4
  %v193 = insertelement <8 x float> poison, float %v192, i64 0
  %v194 = shufflevector <8 x float> %v193, <8 x float> poison, <8 x i32> zeroinitializer
  %v195 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v155, <8 x float> %v194, <8 x float> %v153)
  call void asm sideeffect "", "x,x"(<8 x float> %v194, <8 x float> %v195)
  store <8 x float> %v195, ptr %v43, align 32
  %v198 = getelementptr i8, ptr %v57, i64 96
  %v200 = getelementptr i8, ptr %v62, i64 4
  %v201 = getelementptr i8, ptr %v65, i64 96
  %v196 = icmp ne ptr %v198, %v199
  br i1 %v196, label %b52, label %b197, !llvm.loop !0
b197:
  %v204 = getelementptr i8, ptr %v56, i64 288
  %v206 = getelementptr i8, ptr %v61, i64 36
  %v207 = getelementptr i8, ptr %v64, i64 288
  %v202 = icmp ne ptr %v204, %v205
  br i1 %v202, label %b50, label %b203, !llvm.loop !0
b203:
  br label %b49
b49:
  %v208 = icmp slt i64 %v35, 1
  br i1 %v208, label %b209, label %b210
b209:
  %v362 = getelementptr i8, ptr %v54, i64 576
  br label %b211
b211:
  %v215 = phi ptr [ %v54, %b209 ], [ %v361, %b355 ]
  %v219 = phi ptr [ %v3, %b209 ], [ %v363, %b355 ]
  %v357 = getelementptr i8, ptr %v215, i64 288
  br label %b213
b213:
  %v216 = phi ptr [ %v215, %b211 ], [ %v356, %b213 ]
  %v220 = phi ptr [ %v219, %b211 ], [ %v358, %b213 ]
  %v217 = getelementptr i8, ptr %v216, i64 1152
  call void @llvm.prefetch.p0(ptr %v217, i32 0, i32 2, i32 1)
  %v218 = load <8 x float>, ptr %v36, align 32
  %v221 = getelementptr i8, ptr %v220, i64 36
  %v222 = load <8 x float>, ptr %v221, align 4
  %v223 = getelementptr i8, ptr %v216, i64 288
  %v224 = load float, ptr %v223, align 4
  %v225 = insertelement <8 x float> poison, float %v224, i64 0
  %v226 = shufflevector <8 x float> %v225, <8 x float> poison, <8 x i32> zeroinitializer
  %v227 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v222, <8 x float> %v226, <8 x float> %v218)
  call void asm sideeffect "", "x,x"(<8 x float> %v226, <8 x float> %v227)
  store <8 x float> %v227, ptr %v36, align 32
  %v228 = load <8 x float>, ptr %v37, align 32
  %v229 = getelementptr i8, ptr %v216, i64 292
  %v230 = load float, ptr %v229, align 4
  %v231 = insertelement <8 x float> poison, float %v230, i64 0
  %v232 = shufflevector <8 x float> %v231, <8 x float> poison, <8 x i32> zeroinitializer
  %v233 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v222, <8 x float> %v232, <8 x float> %v228)
  call void asm sideeffect "", "x,x"(<8 x float> %v232, <8 x float> %v233)
  store <8 x float> %v233, ptr %v37, align 32
  %v234 = load <8 x float>, ptr %v38, align 32
  %v235 = getelementptr i8, ptr %v216, i64 296
  %v236 = load float, ptr %v235, align 4
  %v237 = insertelement <8 x float> poison, float %v236, i64 0
  %v238 = shufflevector <8 x float> %v237, <8 x float> poison, <8 x i32> zeroinitializer
  %v239 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v222, <8 x float> %v238, <8 x float> %v234)
  call void asm sideeffect "", "x,x"(<8 x float> %v238, <8 x float> %v239)
  store <8 x float> %v239, ptr %v38, align 32
  %v240 = load <8 x float>, ptr %v39, align 32
  %v241 = getelementptr i8, ptr %v216, i64 300
  %v242 = load float, ptr %v241, align 4
  %v243 = insertelement <8 x float> poison, float %v242, i64 0
  %v244 = shufflevector <8 x float> %v243, <8 x float> poison, <8 x i32> zeroinitializer
  %v245 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v222, <8 x float> %v244, <8 x float> %v240)
  call void asm sideeffect "", "x,x"(<8 x float> %v244, <8 x float> %v245)
  store <8 x float> %v245, ptr %v39, align 32
  %v246 = load <8 x float>, ptr %v40, align 32
  %v247 = getelementptr i8, ptr %v216, i64 304
  %v248 = load float, ptr %v247, align 4
  %v249 = insertelement <8 x float> poison, float %v248, i64 0
  %v250 = shufflevector <8 x float> %v249, <8 x float> poison, <8 x i32> zeroinitializer
  %v251 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v222, <8 x float> %v250, <8 x float> %v246)
  call void asm sideeffect "", "x,x"(<8 x float> %v250, <8 x float> %v251)
  store <8 x float> %v251, ptr %v40, align 32
  %v252 = load <8 x float>, ptr %v41, align 32
  %v253 = getelementptr i8, ptr %v216, i64 308
  %v254 = load float, ptr %v253, align 4
  %v255 = insertelement <8 x float> poison, float %v254, i64 0
  %v256 = shufflevector <8 x float> %v255, <8 x float> poison, <8 x i32> zeroinitializer
  %v257 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v222, <8 x float> %v256, <8 x float> %v252)
  call void asm sideeffect "", "x,x"(<8 x float> %v256, <8 x float> %v257)
  store <8 x float> %v257, ptr %v41, align 32
  %v258 = load <8 x float>, ptr %v42, align 32
  %v259 = getelementptr i8, ptr %v216, i64 312
  %v260 = load float, ptr %v259, align 4
  %v261 = insertelement <8 x float> poison, float %v260, i64 0
  %v262 = shufflevector <8 x float> %v261, <8 x float> poison, <8 x i32> zeroinitializer
  %v263 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v222, <8 x float> %v262, <8 x float> %v258)
  call void asm sideeffect "", "x,x"(<8 x float> %v262, <8 x float> %v263)
  store <8 x float> %v263, ptr %v42, align 32
  %v264 = load <8 x float>, ptr %v43, align 32
  %v265 = getelementptr i8, ptr %v216, i64 316
  %v266 = load float, ptr %v265, align 4
  %v267 = insertelement <8 x float> poison, float %v266, i64 0
  %v268 = shufflevector <8 x float> %v267, <8 x float> poison, <8 x i32> zeroinitializer
  %v269 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v222, <8 x float> %v268, <8 x float> %v264)
  call void asm sideeffect "", "x,x"(<8 x float> %v268, <8 x float> %v269)
  store <8 x float> %v269, ptr %v43, align 32
  %v270 = getelementptr i8, ptr %v220, i64 360
  %v271 = load <8 x float>, ptr %v270, align 4
  %v272 = getelementptr i8, ptr %v216, i64 320
  %v273 = load float, ptr %v272, align 4
  %v274 = insertelement <8 x float> poison, float %v273, i64 0
  %v275 = shufflevector <8 x float> %v274, <8 x float> poison, <8 x i32> zeroinitializer
  %v276 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v271, <8 x float> %v275, <8 x float> %v227)
  call void asm sideeffect "", "x,x"(<8 x float> %v275, <8 x float> %v276)
  store <8 x float> %v276, ptr %v36, align 32
  %v277 = getelementptr i8, ptr %v216, i64 324
  %v278 = load float, ptr %v277, align 4
  %v279 = insertelement <8 x float> poison, float %v278, i64 0
  %v280 = shufflevector <8 x float> %v279, <8 x float> poison, <8 x i32> zeroinitializer
  %v281 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v271, <8 x float> %v280, <8 x float> %v233)
  call void asm sideeffect "", "x,x"(<8 x float> %v280, <8 x float> %v281)
  store <8 x float> %v281, ptr %v37, align 32
  %v282 = getelementptr i8, ptr %v216, i64 328
  %v283 = load float, ptr %v282, align 4
  %v284 = insertelement <8 x float> poison, float %v283, i64 0
  %v285 = shufflevector <8 x float> %v284, <8 x float> poison, <8 x i32> zeroinitializer
  %v286 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v271, <8 x float> %v285, <8 x float> %v239)
  call void asm sideeffect "", "x,x"(<8 x float> %v285, <8 x float> %v286)
  store <8 x float> %v286, ptr %v38, align 32
  %v287 = getelementptr i8, ptr %v216, i64 332
  %v288 = load float, ptr %v287, align 4
  %v289 = insertelement <8 x float> poison, float %v288, i64 0
  %v290 = shufflevector <8 x float> %v289, <8 x float> poison, <8 x i32> zeroinitializer
  %v291 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v271, <8 x float> %v290, <8 x float> %v245)
  call void asm sideeffect "", "x,x"(<8 x float> %v290, <8 x float> %v291)
  store <8 x float> %v291, ptr %v39, align 32
  %v292 = getelementptr i8, ptr %v216, i64 336
  %v293 = load float, ptr %v292, align 4
  %v294 = insertelement <8 x float> poison, float %v293, i64 0
  %v295 = shufflevector <8 x float> %v294, <8 x float> poison, <8 x i32> zeroinitializer
  %v296 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v271, <8 x float> %v295, <8 x float> %v251)
  call void asm sideeffect "", "x,x"(<8 x float> %v295, <8 x float> %v296)
  store <8 x float> %v296, ptr %v40, align 32
  %v297 = getelementptr i8, ptr %v216, i64 340
  %v298 = load float, ptr %v297, align 4
  %v299 = insertelement <8 x float> poison, float %v298, i64 0
  %v300 = shufflevector <8 x float> %v299, <8 x float> poison, <8 x i32> zeroinitializer
  %v301 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v271, <8 x float> %v300, <8 x float> %v257)
  call void asm sideeffect "", "x,x"(<8 x float> %v300, <8 x float> %v301)
  store <8 x float> %v301, ptr %v41, align 32
  %v302 = getelementptr i8, ptr %v216, i64 344
  %v303 = load float, ptr %v302, align 4
  %v304 = insertelement <8 x float> poison, float %v303, i64 0
  %v305 = shufflevector <8 x float> %v304, <8 x float> poison, <8 x i32> zeroinitializer
  %v306 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v271, <8 x float> %v305, <8 x float> %v263)
  call void asm sideeffect "", "x,x"(<8 x float> %v305, <8 x float> %v306)
  store <8 x float> %v306, ptr %v42, align 32
  %v307 = getelementptr i8, ptr %v216, i64 348
  %v308 = load float, ptr %v307, align 4
  %v309 = insertelement <8 x float> poison, float %v308, i64 0
  %v310 = shufflevector <8 x float> %v309, <8 x float> poison, <8 x i32> zeroinitializer
  %v311 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v271, <8 x float> %v310, <8 x float> %v269)
  call void asm sideeffect "", "x,x"(<8 x float> %v310, <8 x float> %v311)
  store <8 x float> %v311, ptr %v43, align 32
  %v312 = getelementptr i8, ptr %v220, i64 684
  %v313 = load <8 x float>, ptr %v312, align 4
  %v314 = getelementptr i8, ptr %v216, i64 352
  %v315 = load float, ptr %v314, align 4
  %v316 = insertelement <8 x float> poison, float %v315, i64 0
  %v317 = shufflevector <8 x float> %v316, <8 x float> poison, <8 x i32> zeroinitializer
  %v318 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v313, <8 x float> %v317, <8 x float> %v276)
  call void asm sideeffect "", "x,x"(<8 x float> %v317, <8 x float> %v318)
  store <8 x float> %v318, ptr %v36, align 32
  %v319 = getelementptr i8, ptr %v216, i64 356
  %v320 = load float, ptr %v319, align 4
  %v321 = insertelement <8 x float> poison, float %v320, i64 0
  %v322 = shufflevector <8 x float> %v321, <8 x float> poison, <8 x i32> zeroinitializer
  %v323 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v313, <8 x float> %v322, <8 x float> %v281)
  call void asm sideeffect "", "x,x"(<8 x float> %v322, <8 x float> %v323)
  store <8 x float> %v323, ptr %v37, align 32
  %v324 = getelementptr i8, ptr %v216, i64 360
  %v325 = load float, ptr %v324, align 4
  %v326 = insertelement <8 x float> poison, float %v325, i64 0
  %v327 = shufflevector <8 x float> %v326, <8 x float> poison, <8 x i32> zeroinitializer
  %v328 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v313, <8 x float> %v327, <8 x float> %v286)
  call void asm sideeffect "", "x,x"(<8 x float> %v327, <8 x float> %v328)
  store <8 x float> %v328, ptr %v38, align 32
  %v329 = getelementptr i8, ptr %v216, i64 364
  %v330 = load float, ptr %v329, align 4
  %v331 = insertelement <8 x float> poison, float %v330, i64 0
  %v332 = shufflevector <8 x float> %v331, <8 x float> poison, <8 x i32> zeroinitializer
  %v333 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v313, <8 x float> %v332, <8 x float> %v291)
  call void asm sideeffect "", "x,x"(<8 x float> %v332, <8 x float> %v333)
  store <8 x float> %v333, ptr %v39, align 32
  %v334 = getelementptr i8, ptr %v216, i64 368
  %v335 = load float, ptr %v334, align 4
  %v336 = insertelement <8 x float> poison, float %v335, i64 0
  %v337 = shufflevector <8 x float> %v336, <8 x float> poison, <8 x i32> zeroinitializer
  %v338 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v313, <8 x float> %v337, <8 x float> %v296)
  call void asm sideeffect "", "x,x"(<8 x float> %v337, <8 x float> %v338)
  store <8 x float> %v338, ptr %v40, align 32
  %v339 = getelementptr i8, ptr %v216, i64 372
  %v340 = load float, ptr %v339, align 4
  %v341 = insertelement <8 x float> poison, float %v340, i64 0
  %v342 = shufflevector <8 x float> %v341, <8 x float> poison, <8 x i32> zeroinitializer
  %v343 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v313, <8 x float> %v342, <8 x float> %v301)
  call void asm sideeffect "", "x,x"(<8 x float> %v342, <8 x float> %v343)
  store <8 x float> %v343, ptr %v41, align 32
  %v344 = getelementptr i8, ptr %v216, i64 376
  %v345 = load float, ptr %v344, align 4
  %v346 = insertelement <8 x float> poison, float %v345, i64 0
  %v347 = shufflevector <8 x float> %v346, <8 x float> poison, <8 x i32> zeroinitializer
  %v348 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v313, <8 x float> %v347, <8 x float> %v306)
  call void asm sideeffect "", "x,x"(<8 x float> %v347, <8 x float> %v348)
  store <8 x float> %v348, ptr %v42, align 32
  %v349 = getelementptr i8, ptr %v216, i64 380
  %v350 = load float, ptr %v349, align 4
  %v351 = insertelement <8 x float> poison, float %v350, i64 0
  %v352 = shufflevector <8 x float> %v351, <8 x float> poison, <8 x i32> zeroinitializer
  %v353 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v313, <8 x float> %v352, <8 x float> %v311)
  call void asm sideeffect "", "x,x"(<8 x float> %v352, <8 x float> %v353)
  store <8 x float> %v353, ptr %v43, align 32
  %v356 = getelementptr i8, ptr %v216, i64 96
  %v358 = getelementptr i8, ptr %v220, i64 4
  %v354 = icmp ne ptr %v356, %v357
  br i1 %v354, label %b213, label %b355, !llvm.loop !0
b355:
  %v361 = getelementptr i8, ptr %v215, i64 288
  %v363 = getelementptr i8, ptr %v219, i64 36
  %v359 = icmp ne ptr %v361, %v362
  br i1 %v359, label %b211, label %b360, !llvm.loop !0
b360:
  br label %b210
b210:
  %v364 = icmp sle i64 %v44, -6
  %v365 = and i1 %v45, %v364
  br i1 %v365, label %b366, label %b367
b366:
  %v518 = getelementptr i8, ptr %v54, i64 576
  br label %b368
b368:
  %v372 = phi ptr [ %v54, %b366 ], [ %v517, %b511 ]
  %v376 = phi ptr [ %v3, %b366 ], [ %v519, %b511 ]
  %v513 = getelementptr i8, ptr %v372, i64 288
  br label %b370
b370:
  %v373 = phi ptr [ %v372, %b368 ], [ %v512, %b370 ]
  %v377 = phi ptr [ %v376, %b368 ], [ %v514, %b370 ]
  %v374 = getelementptr i8, ptr %v373, i64 1248
  call void @llvm.prefetch.p0(ptr %v374, i32 0, i32 2, i32 1)
  %v375 = load <8 x float>, ptr %v36, align 32
  %v378 = getelementptr i8, ptr %v377, i64 216
  %v379 = load <8 x float>, ptr %v378, align 4
  %v380 = load float, ptr %v373, align 4
  %v381 = insertelement <8 x float> poison, float %v380, i64 0
  %v382 = shufflevector <8 x float> %v381, <8 x float> poison, <8 x i32> zeroinitializer
  %v383 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v379, <8 x float> %v382, <8 x float> %v375)
  call void asm sideeffect "", "x,x"(<8 x float> %v382, <8 x float> %v383)
  store <8 x float> %v383, ptr %v36, align 32
  %v384 = load <8 x float>, ptr %v37, align 32
  %v385 = getelementptr i8, ptr %v373, i64 4
  %v386 = load float, ptr %v385, align 4
  %v387 = insertelement <8 x float> poison, float %v386, i64 0
  %v388 = shufflevector <8 x float> %v387, <8 x float> poison, <8 x i32> zeroinitializer
  %v389 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v379, <8 x float> %v388, <8 x float> %v384)
  call void asm sideeffect "", "x,x"(<8 x float> %v388, <8 x float> %v389)
  store <8 x float> %v389, ptr %v37, align 32
  %v390 = load <8 x float>, ptr %v38, align 32
  %v391 = getelementptr i8, ptr %v373, i64 8
  %v392 = load float, ptr %v391, align 4
  %v393 = insertelement <8 x float> poison, float %v392, i64 0
  %v394 = shufflevector <8 x float> %v393, <8 x float> poison, <8 x i32> zeroinitializer
  %v395 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v379, <8 x float> %v394, <8 x float> %v390)
  call void asm sideeffect "", "x,x"(<8 x float> %v394, <8 x float> %v395)
  store <8 x float> %v395, ptr %v38, align 32
  %v396 = load <8 x float>, ptr %v39, align 32
  %v397 = getelementptr i8, ptr %v373, i64 12
  %v398 = load float, ptr %v397, align 4
  %v399 = insertelement <8 x float> poison, float %v398, i64 0
  %v400 = shufflevector <8 x float> %v399, <8 x float> poison, <8 x i32> zeroinitializer
  %v401 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v379, <8 x float> %v400, <8 x float> %v396)
  call void asm sideeffect "", "x,x"(<8 x float> %v400, <8 x float> %v401)
  store <8 x float> %v401, ptr %v39, align 32
  %v402 = load <8 x float>, ptr %v40, align 32
  %v403 = getelementptr i8, ptr %v373, i64 16
  %v404 = load float, ptr %v403, align 4
  %v405 = insertelement <8 x float> poison, float %v404, i64 0
  %v406 = shufflevector <8 x float> %v405, <8 x float> poison, <8 x i32> zeroinitializer
  %v407 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v379, <8 x float> %v406, <8 x float> %v402)
  call void asm sideeffect "", "x,x"(<8 x float> %v406, <8 x float> %v407)
  store <8 x float> %v407, ptr %v40, align 32
  %v408 = load <8 x float>, ptr %v41, align 32
  %v409 = getelementptr i8, ptr %v373, i64 20
  %v410 = load float, ptr %v409, align 4
  %v411 = insertelement <8 x float> poison, float %v410, i64 0
  %v412 = shufflevector <8 x float> %v411, <8 x float> poison, <8 x i32> zeroinitializer
  %v413 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v379, <8 x float> %v412, <8 x float> %v408)
  call void asm sideeffect "", "x,x"(<8 x float> %v412, <8 x float> %v413)
  store <8 x float> %v413, ptr %v41, align 32
  %v414 = load <8 x float>, ptr %v42, align 32
  %v415 = getelementptr i8, ptr %v373, i64 24
  %v416 = load float, ptr %v415, align 4
  %v417 = insertelement <8 x float> poison, float %v416, i64 0
  %v418 = shufflevector <8 x float> %v417, <8 x float> poison, <8 x i32> zeroinitializer
  %v419 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v379, <8 x float> %v418, <8 x float> %v414)
  call void asm sideeffect "", "x,x"(<8 x float> %v418, <8 x float> %v419)
  store <8 x float> %v419, ptr %v42, align 32
  %v420 = load <8 x float>, ptr %v43, align 32
  %v421 = getelementptr i8, ptr %v373, i64 28
  %v422 = load float, ptr %v421, align 4
  %v423 = insertelement <8 x float> poison, float %v422, i64 0
  %v424 = shufflevector <8 x float> %v423, <8 x float> poison, <8 x i32> zeroinitializer
  %v425 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v379, <8 x float> %v424, <8 x float> %v420)
  call void asm sideeffect "", "x,x"(<8 x float> %v424, <8 x float> %v425)
  store <8 x float> %v425, ptr %v43, align 32
  %v426 = getelementptr i8, ptr %v377, i64 540
  %v427 = load <8 x float>, ptr %v426, align 4
  %v428 = getelementptr i8, ptr %v373, i64 32
  %v429 = load float, ptr %v428, align 4
  %v430 = insertelement <8 x float> poison, float %v429, i64 0
  %v431 = shufflevector <8 x float> %v430, <8 x float> poison, <8 x i32> zeroinitializer
  %v432 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v427, <8 x float> %v431, <8 x float> %v383)
  call void asm sideeffect "", "x,x"(<8 x float> %v431, <8 x float> %v432)
  store <8 x float> %v432, ptr %v36, align 32
  %v433 = getelementptr i8, ptr %v373, i64 36
  %v434 = load float, ptr %v433, align 4
  %v435 = insertelement <8 x float> poison, float %v434, i64 0
  %v436 = shufflevector <8 x float> %v435, <8 x float> poison, <8 x i32> zeroinitializer
  %v437 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v427, <8 x float> %v436, <8 x float> %v389)
  call void asm sideeffect "", "x,x"(<8 x float> %v436, <8 x float> %v437)
  store <8 x float> %v437, ptr %v37, align 32
  %v438 = getelementptr i8, ptr %v373, i64 40
  %v439 = load float, ptr %v438, align 4
  %v440 = insertelement <8 x float> poison, float %v439, i64 0
  %v441 = shufflevector <8 x float> %v440, <8 x float> poison, <8 x i32> zeroinitializer
  %v442 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v427, <8 x float> %v441, <8 x float> %v395)
  call void asm sideeffect "", "x,x"(<8 x float> %v441, <8 x float> %v442)
  store <8 x float> %v442, ptr %v38, align 32
  %v443 = getelementptr i8, ptr %v373, i64 44
  %v444 = load float, ptr %v443, align 4
  %v445 = insertelement <8 x float> poison, float %v444, i64 0
  %v446 = shufflevector <8 x float> %v445, <8 x float> poison, <8 x i32> zeroinitializer
  %v447 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v427, <8 x float> %v446, <8 x float> %v401)
  call void asm sideeffect "", "x,x"(<8 x float> %v446, <8 x float> %v447)
  store <8 x float> %v447, ptr %v39, align 32
  %v448 = getelementptr i8, ptr %v373, i64 48
  %v449 = load float, ptr %v448, align 4
  %v450 = insertelement <8 x float> poison, float %v449, i64 0
  %v451 = shufflevector <8 x float> %v450, <8 x float> poison, <8 x i32> zeroinitializer
  %v452 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v427, <8 x float> %v451, <8 x float> %v407)
  call void asm sideeffect "", "x,x"(<8 x float> %v451, <8 x float> %v452)
  store <8 x float> %v452, ptr %v40, align 32
  %v453 = getelementptr i8, ptr %v373, i64 52
  %v454 = load float, ptr %v453, align 4
  %v455 = insertelement <8 x float> poison, float %v454, i64 0
  %v456 = shufflevector <8 x float> %v455, <8 x float> poison, <8 x i32> zeroinitializer
  %v457 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v427, <8 x float> %v456, <8 x float> %v413)
  call void asm sideeffect "", "x,x"(<8 x float> %v456, <8 x float> %v457)
  store <8 x float> %v457, ptr %v41, align 32
  %v458 = getelementptr i8, ptr %v373, i64 56
  %v459 = load float, ptr %v458, align 4
  %v460 = insertelement <8 x float> poison, float %v459, i64 0
  %v461 = shufflevector <8 x float> %v460, <8 x float> poison, <8 x i32> zeroinitializer
  %v462 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v427, <8 x float> %v461, <8 x float> %v419)
  call void asm sideeffect "", "x,x"(<8 x float> %v461, <8 x float> %v462)
  store <8 x float> %v462, ptr %v42, align 32
  %v463 = getelementptr i8, ptr %v373, i64 60
  %v464 = load float, ptr %v463, align 4
  %v465 = insertelement <8 x float> poison, float %v464, i64 0
  %v466 = shufflevector <8 x float> %v465, <8 x float> poison, <8 x i32> zeroinitializer
  %v467 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v427, <8 x float> %v466, <8 x float> %v425)
  call void asm sideeffect "", "x,x"(<8 x float> %v466, <8 x float> %v467)
  store <8 x float> %v467, ptr %v43, align 32
  %v468 = getelementptr i8, ptr %v377, i64 864
  %v469 = load <8 x float>, ptr %v468, align 4
  %v470 = getelementptr i8, ptr %v373, i64 64
  %v471 = load float, ptr %v470, align 4
  %v472 = insertelement <8 x float> poison, float %v471, i64 0
  %v473 = shufflevector <8 x float> %v472, <8 x float> poison, <8 x i32> zeroinitializer
  %v474 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v469, <8 x float> %v473, <8 x float> %v432)
  call void asm sideeffect "", "x,x"(<8 x float> %v473, <8 x float> %v474)
  store <8 x float> %v474, ptr %v36, align 32
  %v475 = getelementptr i8, ptr %v373, i64 68
  %v476 = load float, ptr %v475, align 4
  %v477 = insertelement <8 x float> poison, float %v476, i64 0
  %v478 = shufflevector <8 x float> %v477, <8 x float> poison, <8 x i32> zeroinitializer
  %v479 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v469, <8 x float> %v478, <8 x float> %v437)
  call void asm sideeffect "", "x,x"(<8 x float> %v478, <8 x float> %v479)
  store <8 x float> %v479, ptr %v37, align 32
  %v480 = getelementptr i8, ptr %v373, i64 72
  %v481 = load float, ptr %v480, align 4
  %v482 = insertelement <8 x float> poison, float %v481, i64 0
  %v483 = shufflevector <8 x float> %v482, <8 x float> poison, <8 x i32> zeroinitializer
  %v484 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v469, <8 x float> %v483, <8 x float> %v442)
  call void asm sideeffect "", "x,x"(<8 x float> %v483, <8 x float> %v484)
  store <8 x float> %v484, ptr %v38, align 32
  %v485 = getelementptr i8, ptr %v373, i64 76
  %v486 = load float, ptr %v485, align 4
  %v487 = insertelement <8 x float> poison, float %v486, i64 0
  %v488 = shufflevector <8 x float> %v487, <8 x float> poison, <8 x i32> zeroinitializer
  %v489 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v469, <8 x float> %v488, <8 x float> %v447)
  call void asm sideeffect "", "x,x"(<8 x float> %v488, <8 x float> %v489)
  store <8 x float> %v489, ptr %v39, align 32
  %v490 = getelementptr i8, ptr %v373, i64 80
  %v491 = load float, ptr %v490, align 4
  %v492 = insertelement <8 x float> poison, float %v491, i64 0
  %v493 = shufflevector <8 x float> %v492, <8 x float> poison, <8 x i32> zeroinitializer
  %v494 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v469, <8 x float> %v493, <8 x float> %v452)
  call void asm sideeffect "", "x,x"(<8 x float> %v493, <8 x float> %v494)
  store <8 x float> %v494, ptr %v40, align 32
  %v495 = getelementptr i8, ptr %v373, i64 84
  %v496 = load float, ptr %v495, align 4
  %v497 = insertelement <8 x float> poison, float %v496, i64 0
  %v498 = shufflevector <8 x float> %v497, <8 x float> poison, <8 x i32> zeroinitializer
  %v499 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v469, <8 x float> %v498, <8 x float> %v457)
  call void asm sideeffect "", "x,x"(<8 x float> %v498, <8 x float> %v499)
  store <8 x float> %v499, ptr %v41, align 32
  %v500 = getelementptr i8, ptr %v373, i64 88
  %v501 = load float, ptr %v500, align 4
  %v502 = insertelement <8 x float> poison, float %v501, i64 0
  %v503 = shufflevector <8 x float> %v502, <8 x float> poison, <8 x i32> zeroinitializer
  %v504 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v469, <8 x float> %v503, <8 x float> %v462)
  call void asm sideeffect "", "x,x"(<8 x float> %v503, <8 x float> %v504)
  store <8 x float> %v504, ptr %v42, align 32
  %v505 = getelementptr i8, ptr %v373, i64 92
  %v506 = load float, ptr %v505, align 4
  %v507 = insertelement <8 x float> poison, float %v506, i64 0
  %v508 = shufflevector <8 x float> %v507, <8 x float> poison, <8 x i32> zeroinitializer
  %v509 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v469, <8 x float> %v508, <8 x float> %v467)
  call void asm sideeffect "", "x,x"(<8 x float> %v508, <8 x float> %v509)
  store <8 x float> %v509, ptr %v43, align 32
  %v512 = getelementptr i8, ptr %v373, i64 96
  %v514 = getelementptr i8, ptr %v377, i64 4
  %v510 = icmp ne ptr %v512, %v513
  br i1 %v510, label %b370, label %b511, !llvm.loop !0
b511:
  %v517 = getelementptr i8, ptr %v372, i64 288
  %v519 = getelementptr i8, ptr %v376, i64 36
  %v515 = icmp ne ptr %v517, %v518
  br i1 %v515, label %b368, label %b516, !llvm.loop !0
b516:
  br label %b367
b367:
  %v520 = load <8 x float>, ptr %v36, align 32
  %v521 = fcmp ogt <8 x float> splat (float 0x0000000000000000), %v520
  %v522 = select <8 x i1> %v521, <8 x float> splat (float 0x0000000000000000), <8 x float> %v520
  %v525 = shufflevector <8 x float> %v522, <8 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  store <4 x float> %v525, ptr %v524, align 4
  %v526 = shufflevector <8 x float> %v522, <8 x float> poison, <2 x i32> <i32 4, i32 5>
  %v527 = getelementptr i8, ptr %v524, i64 16
  store <2 x float> %v526, ptr %v527, align 4
  %v528 = extractelement <8 x float> %v522, i64 6
  %v529 = getelementptr i8, ptr %v524, i64 24
  store float %v528, ptr %v529, align 4
  %v530 = load <8 x float>, ptr %v37, align 32
  %v531 = fcmp ogt <8 x float> splat (float 0x0000000000000000), %v530
  %v532 = select <8 x i1> %v531, <8 x float> splat (float 0x0000000000000000), <8 x float> %v530
  %v533 = getelementptr i8, ptr %v524, i64 196
  %v534 = shufflevector <8 x float> %v532, <8 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  store <4 x float> %v534, ptr %v533, align 4
  %v535 = shufflevector <8 x float> %v532, <8 x float> poison, <2 x i32> <i32 4, i32 5>
  %v536 = getelementptr i8, ptr %v524, i64 212
  store <2 x float> %v535, ptr %v536, align 4
  %v537 = extractelement <8 x float> %v532, i64 6
  %v538 = getelementptr i8, ptr %v524, i64 220
  store float %v537, ptr %v538, align 4
  %v539 = load <8 x float>, ptr %v38, align 32
  %v540 = fcmp ogt <8 x float> splat (float 0x0000000000000000), %v539
  %v541 = select <8 x i1> %v540, <8 x float> splat (float 0x0000000000000000), <8 x float> %v539
  %v542 = getelementptr i8, ptr %v524, i64 392
  %v543 = shufflevector <8 x float> %v541, <8 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  store <4 x float> %v543, ptr %v542, align 4
  %v544 = shufflevector <8 x float> %v541, <8 x float> poison, <2 x i32> <i32 4, i32 5>
  %v545 = getelementptr i8, ptr %v524, i64 408
  store <2 x float> %v544, ptr %v545, align 4
  %v546 = extractelement <8 x float> %v541, i64 6
  %v547 = getelementptr i8, ptr %v524, i64 416
  store float %v546, ptr %v547, align 4
  %v548 = load <8 x float>, ptr %v39, align 32
  %v549 = fcmp ogt <8 x float> splat (float 0x0000000000000000), %v548
  %v550 = select <8 x i1> %v549, <8 x float> splat (float 0x0000000000000000), <8 x float> %v548
  %v551 = getelementptr i8, ptr %v524, i64 588
  %v552 = shufflevector <8 x float> %v550, <8 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  store <4 x float> %v552, ptr %v551, align 4
  %v553 = shufflevector <8 x float> %v550, <8 x float> poison, <2 x i32> <i32 4, i32 5>
  %v554 = getelementptr i8, ptr %v524, i64 604
  store <2 x float> %v553, ptr %v554, align 4
  %v555 = extractelement <8 x float> %v550, i64 6
  %v556 = getelementptr i8, ptr %v524, i64 612
  store float %v555, ptr %v556, align 4
  %v557 = load <8 x float>, ptr %v40, align 32
  %v558 = fcmp ogt <8 x float> splat (float 0x0000000000000000), %v557
  %v559 = select <8 x i1> %v558, <8 x float> splat (float 0x0000000000000000), <8 x float> %v557
  %v560 = getelementptr i8, ptr %v524, i64 784
  %v561 = shufflevector <8 x float> %v559, <8 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  store <4 x float> %v561, ptr %v560, align 4
  %v562 = shufflevector <8 x float> %v559, <8 x float> poison, <2 x i32> <i32 4, i32 5>
  %v563 = getelementptr i8, ptr %v524, i64 800
  store <2 x float> %v562, ptr %v563, align 4
  %v564 = extractelement <8 x float> %v559, i64 6
  %v565 = getelementptr i8, ptr %v524, i64 808
  store float %v564, ptr %v565, align 4
  %v566 = load <8 x float>, ptr %v41, align 32
  %v567 = fcmp ogt <8 x float> splat (float 0x0000000000000000), %v566
  %v568 = select <8 x i1> %v567, <8 x float> splat (float 0x0000000000000000), <8 x float> %v566
  %v569 = getelementptr i8, ptr %v524, i64 980
  %v570 = shufflevector <8 x float> %v568, <8 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  store <4 x float> %v570, ptr %v569, align 4
  %v571 = shufflevector <8 x float> %v568, <8 x float> poison, <2 x i32> <i32 4, i32 5>
  %v572 = getelementptr i8, ptr %v524, i64 996
  store <2 x float> %v571, ptr %v572, align 4
  %v573 = extractelement <8 x float> %v568, i64 6
  %v574 = getelementptr i8, ptr %v524, i64 1004
  store float %v573, ptr %v574, align 4
  %v575 = load <8 x float>, ptr %v42, align 32
  %v576 = fcmp ogt <8 x float> splat (float 0x0000000000000000), %v575
  %v577 = select <8 x i1> %v576, <8 x float> splat (float 0x0000000000000000), <8 x float> %v575
  %v578 = getelementptr i8, ptr %v524, i64 1176
  %v579 = shufflevector <8 x float> %v577, <8 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  store <4 x float> %v579, ptr %v578, align 4
  %v580 = shufflevector <8 x float> %v577, <8 x float> poison, <2 x i32> <i32 4, i32 5>
  %v581 = getelementptr i8, ptr %v524, i64 1192
  store <2 x float> %v580, ptr %v581, align 4
  %v582 = extractelement <8 x float> %v577, i64 6
  %v583 = getelementptr i8, ptr %v524, i64 1200
  store float %v582, ptr %v583, align 4
  %v584 = load <8 x float>, ptr %v43, align 32
  %v585 = fcmp ogt <8 x float> splat (float 0x0000000000000000), %v584
  %v586 = select <8 x i1> %v585, <8 x float> splat (float 0x0000000000000000), <8 x float> %v584
  %v587 = getelementptr i8, ptr %v524, i64 1372
  %v588 = shufflevector <8 x float> %v586, <8 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  store <4 x float> %v588, ptr %v587, align 4
  %v589 = shufflevector <8 x float> %v586, <8 x float> poison, <2 x i32> <i32 4, i32 5>
  %v590 = getelementptr i8, ptr %v524, i64 1388
  store <2 x float> %v589, ptr %v590, align 4
  %v591 = extractelement <8 x float> %v586, i64 6
  %v592 = getelementptr i8, ptr %v524, i64 1396
  store float %v591, ptr %v592, align 4
  %v595 = getelementptr i8, ptr %v55, i64 64
  %v597 = getelementptr i8, ptr %v60, i64 36
  %v598 = getelementptr i8, ptr %v524, i64 28
  %v599 = add nuw nsw i64 %v35, 1
  %v593 = icmp ult i64 %v599, 7
  br i1 %v593, label %b34, label %b594, !llvm.loop !0
b594:
  %v602 = getelementptr i8, ptr %v54, i64 864
  %v604 = getelementptr i8, ptr %v523, i64 1568
  %v600 = icmp ne ptr %v602, %v603
  br i1 %v600, label %b1, label %b601, !llvm.loop !0
b601:
  ret void
}

define void @convolution(ptr %x0, ptr %x1, i32 %x2) nounwind {
entry:
  %v1 = load ptr, ptr %x0, align 8
  %v2 = getelementptr ptr, ptr %x0, i64 1
  %v3 = load ptr, ptr %v2, align 8
  %v4 = getelementptr ptr, ptr %x0, i64 2
  %v5 = load ptr, ptr %v4, align 8
  %v6 = getelementptr i8, ptr %x1, i64 0
  call void @convolution.main(ptr %v1, ptr %v3, ptr %v5, ptr %x1, ptr %v6, i32 %x2)
  ret void
}

!0 = distinct !{!0, !1, !2}
!1 = !{!"llvm.loop.unroll.disable"}
!2 = !{!"llvm.loop.vectorize.enable", i1 false}
