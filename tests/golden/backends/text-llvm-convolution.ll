declare <8 x float> @llvm.masked.load.v8f32.p0(ptr, i32 immarg, <8 x i1>, <8 x float>)
declare void @llvm.prefetch.p0(ptr, i32, i32, i32)
declare <8 x float> @llvm.fma.v8f32(<8 x float>, <8 x float>, <8 x float>)
declare void @GOMP_parallel(ptr, ptr, i32, i32)
declare i32 @omp_get_thread_num()
declare i32 @omp_get_num_threads()
define internal void @convolution.par0.body(ptr noalias align 64 %p2, ptr noalias align 64 %p1, ptr noalias align 64 %p0, ptr %workspace, ptr %slice, i64 %first, i64 %stop) nounwind {
entry:
  %v3 = alloca [972 x i8], align 64
  %v34 = alloca <8 x float>, align 32
  %v35 = alloca <8 x float>, align 32
  %v36 = alloca <8 x float>, align 32
  %v37 = alloca <8 x float>, align 32
  %v38 = alloca <8 x float>, align 32
  %v39 = alloca <8 x float>, align 32
  %v40 = alloca <8 x float>, align 32
  %v41 = alloca <8 x float>, align 32
  %v10 = add <8 x i32> splat (i32 1), <i32 0, i32 -1, i32 -2, i32 -3, i32 -4, i32 -5, i32 -6, i32 -7>
  %v11 = icmp sle <8 x i32> %v10, zeroinitializer
  %v46 = mul nsw i64 %first, 864
  %v47 = getelementptr i8, ptr %p1, i64 %v46
  %v205 = mul nsw i64 %first, 1568
  %v206 = getelementptr i8, ptr %p2, i64 %v205
  br label %b1
b1:
  %v48 = phi ptr [ %v47, %entry ], [ %v285, %b278 ]
  %v207 = phi ptr [ %v206, %entry ], [ %v286, %b278 ]
  %v2 = phi i64 [ %first, %entry ], [ %v287, %b278 ]
  %v30 = getelementptr i8, ptr %v3, i64 972
  br label %b4
b4:
  %v6 = phi ptr [ %v3, %b1 ], [ %v29, %b21 ]
  %v12 = phi ptr [ %p0, %b1 ], [ %v31, %b21 ]
  store <8 x float> splat (float 0x0000000000000000), ptr %v6, align 4
  %v7 = getelementptr i8, ptr %v6, i64 32
  store float 0x0000000000000000, ptr %v7, align 4
  %v23 = getelementptr i8, ptr %v12, i64 196
  br label %b8
b8:
  %v13 = phi ptr [ %v12, %b4 ], [ %v22, %b8 ]
  %v17 = phi ptr [ %v6, %b4 ], [ %v24, %b8 ]
  %v14 = getelementptr i8, ptr %v13, i64 -4
  %v15 = call <8 x float> @llvm.masked.load.v8f32.p0(ptr %v14, i32 4, <8 x i1> %v11, <8 x float> zeroinitializer)
  %v16 = select <8 x i1> %v11, <8 x float> %v15, <8 x float> splat (float 0x0000000000000000)
  %v18 = getelementptr i8, ptr %v17, i64 36
  store <8 x float> %v16, ptr %v18, align 4
  %v19 = getelementptr i8, ptr %v17, i64 68
  store float 0x0000000000000000, ptr %v19, align 4
  %v22 = getelementptr i8, ptr %v13, i64 28
  %v24 = getelementptr i8, ptr %v17, i64 36
  %v20 = icmp ne ptr %v22, %v23
  br i1 %v20, label %b8, label %b21, !llvm.loop !0
b21:
  %v25 = getelementptr i8, ptr %v6, i64 288
  store <8 x float> splat (float 0x0000000000000000), ptr %v25, align 4
  %v26 = getelementptr i8, ptr %v6, i64 320
  store float 0x0000000000000000, ptr %v26, align 4
  %v29 = getelementptr i8, ptr %v6, i64 324
  %v31 = getelementptr i8, ptr %v12, i64 196
  %v27 = icmp ne ptr %v29, %v30
  br i1 %v27, label %b4, label %b28, !llvm.loop !0
b28:
  %v280 = getelementptr i8, ptr %v48, i64 448
  br label %b32
b32:
  %v49 = phi ptr [ %v48, %b28 ], [ %v279, %b197 ]
  %v54 = phi ptr [ %v3, %b28 ], [ %v281, %b197 ]
  %v208 = phi ptr [ %v207, %b28 ], [ %v282, %b197 ]
  store <8 x float> splat (float 0x0000000000000000), ptr %v34, align 32
  store <8 x float> splat (float 0x0000000000000000), ptr %v35, align 32
  store <8 x float> splat (float 0x0000000000000000), ptr %v36, align 32
  store <8 x float> splat (float 0x0000000000000000), ptr %v37, align 32
  store <8 x float> splat (float 0x0000000000000000), ptr %v38, align 32
  store <8 x float> splat (float 0x0000000000000000), ptr %v39, align 32
  store <8 x float> splat (float 0x0000000000000000), ptr %v40, align 32
  store <8 x float> splat (float 0x0000000000000000), ptr %v41, align 32
  %v199 = getelementptr i8, ptr %v49, i64 864
  br label %b42
b42:
  %v50 = phi ptr [ %v49, %b32 ], [ %v198, %b191 ]
  %v55 = phi ptr [ %v54, %b32 ], [ %v200, %b191 ]
  %v58 = phi ptr [ %v48, %b32 ], [ %v201, %b191 ]
  %v193 = getelementptr i8, ptr %v50, i64 288
  br label %b44
b44:
  %v51 = phi ptr [ %v50, %b42 ], [ %v192, %b44 ]
  %v56 = phi ptr [ %v55, %b42 ], [ %v194, %b44 ]
  %v59 = phi ptr [ %v58, %b42 ], [ %v195, %b44 ]
  %v52 = getelementptr i8, ptr %v51, i64 864
  call void @llvm.prefetch.p0(ptr %v52, i32 0, i32 2, i32 1)
  %v53 = load <8 x float>, ptr %v34, align 32
  %v57 = load <8 x float>, ptr %v56, align 4
  %v60 = load float, ptr %v59, align 4
  %v61 = insertelement <8 x float> poison, float %v60, i64 0
  %v62 = shufflevector <8 x float> %v61, <8 x float> poison, <8 x i32> zeroinitializer
  %v63 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v57, <8 x float> %v62, <8 x float> %v53)
  call void asm sideeffect "", "x,x"(<8 x float> %v62, <8 x float> %v63)
  store <8 x float> %v63, ptr %v34, align 32
  %v64 = load <8 x float>, ptr %v35, align 32
  %v65 = getelementptr i8, ptr %v59, i64 4
  %v66 = load float, ptr %v65, align 4
  %v67 = insertelement <8 x float> poison, float %v66, i64 0
  %v68 = shufflevector <8 x float> %v67, <8 x float> poison, <8 x i32> zeroinitializer
  %v69 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v57, <8 x float> %v68, <8 x float> %v64)
  call void asm sideeffect "", "x,x"(<8 x float> %v68, <8 x float> %v69)
  store <8 x float> %v69, ptr %v35, align 32
  %v70 = load <8 x float>, ptr %v36, align 32
  %v71 = getelementptr i8, ptr %v59, i64 8
  %v72 = load float, ptr %v71, align 4
  %v73 = insertelement <8 x float> poison, float %v72, i64 0
  %v74 = shufflevector <8 x float> %v73, <8 x float> poison, <8 x i32> zeroinitializer
  %v75 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v57, <8 x float> %v74, <8 x float> %v70)
  call void asm sideeffect "", "x,x"(<8 x float> %v74, <8 x float> %v75)
  store <8 x float> %v75, ptr %v36, align 32
  %v76 = load <8 x float>, ptr %v37, align 32
  %v77 = getelementptr i8, ptr %v59, i64 12
  %v78 = load float, ptr %v77, align 4
  %v79 = insertelement <8 x float> poison, float %v78, i64 0
  %v80 = shufflevector <8 x float> %v79, <8 x float> poison, <8 x i32> zeroinitializer
  %v81 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v57, <8 x float> %v80, <8 x float> %v76)
  call void asm sideeffect "", "x,x"(<8 x float> %v80, <8 x float> %v81)
  store <8 x float> %v81, ptr %v37, align 32
  %v82 = load <8 x float>, ptr %v38, align 32
  %v83 = getelementptr i8, ptr %v59, i64 16
  %v84 = load float, ptr %v83, align 4
  %v85 = insertelement <8 x float> poison, float %v84, i64 0
  %v86 = shufflevector <8 x float> %v85, <8 x float> poison, <8 x i32> zeroinitializer
  %v87 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v57, <8 x float> %v86, <8 x float> %v82)
  call void asm sideeffect "", "x,x"(<8 x float> %v86, <8 x float> %v87)
  store <8 x float> %v87, ptr %v38, align 32
  %v88 = load <8 x float>, ptr %v39, align 32
  %v89 = getelementptr i8, ptr %v59, i64 20
  %v90 = load float, ptr %v89, align 4
  %v91 = insertelement <8 x float> poison, float %v90, i64 0
  %v92 = shufflevector <8 x float> %v91, <8 x float> poison, <8 x i32> zeroinitializer
  %v93 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v57, <8 x float> %v92, <8 x float> %v88)
  call void asm sideeffect "", "x,x"(<8 x float> %v92, <8 x float> %v93)
  store <8 x float> %v93, ptr %v39, align 32
  %v94 = load <8 x float>, ptr %v40, align 32
  %v95 = getelementptr i8, ptr %v59, i64 24
  %v96 = load float, ptr %v95, align 4
  %v97 = insertelement <8 x float> poison, float %v96, i64 0
  %v98 = shufflevector <8 x float> %v97, <8 x float> poison, <8 x i32> zeroinitializer
  %v99 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v57, <8 x float> %v98, <8 x float> %v94)
  call void asm sideeffect "", "x,x"(<8 x float> %v98, <8 x float> %v99)
  store <8 x float> %v99, ptr %v40, align 32
  %v100 = load <8 x float>, ptr %v41, align 32
  %v101 = getelementptr i8, ptr %v59, i64 28
  %v102 = load float, ptr %v101, align 4
  %v103 = insertelement <8 x float> poison, float %v102, i64 0
  %v104 = shufflevector <8 x float> %v103, <8 x float> poison, <8 x i32> zeroinitializer
  %v105 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v57, <8 x float> %v104, <8 x float> %v100)
  call void asm sideeffect "", "x,x"(<8 x float> %v104, <8 x float> %v105)
  store <8 x float> %v105, ptr %v41, align 32
  %v106 = getelementptr i8, ptr %v56, i64 324
  %v107 = load <8 x float>, ptr %v106, align 4
  %v108 = getelementptr i8, ptr %v59, i64 32
  %v109 = load float, ptr %v108, align 4
  %v110 = insertelement <8 x float> poison, float %v109, i64 0
  %v111 = shufflevector <8 x float> %v110, <8 x float> poison, <8 x i32> zeroinitializer
  %v112 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v107, <8 x float> %v111, <8 x float> %v63)
  call void asm sideeffect "", "x,x"(<8 x float> %v111, <8 x float> %v112)
  store <8 x float> %v112, ptr %v34, align 32
  %v113 = getelementptr i8, ptr %v59, i64 36
  %v114 = load float, ptr %v113, align 4
  %v115 = insertelement <8 x float> poison, float %v114, i64 0
  %v116 = shufflevector <8 x float> %v115, <8 x float> poison, <8 x i32> zeroinitializer
  %v117 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v107, <8 x float> %v116, <8 x float> %v69)
  call void asm sideeffect "", "x,x"(<8 x float> %v116, <8 x float> %v117)
  store <8 x float> %v117, ptr %v35, align 32
  %v118 = getelementptr i8, ptr %v59, i64 40
  %v119 = load float, ptr %v118, align 4
  %v120 = insertelement <8 x float> poison, float %v119, i64 0
  %v121 = shufflevector <8 x float> %v120, <8 x float> poison, <8 x i32> zeroinitializer
  %v122 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v107, <8 x float> %v121, <8 x float> %v75)
  call void asm sideeffect "", "x,x"(<8 x float> %v121, <8 x float> %v122)
  store <8 x float> %v122, ptr %v36, align 32
  %v123 = getelementptr i8, ptr %v59, i64 44
  %v124 = load float, ptr %v123, align 4
  %v125 = insertelement <8 x float> poison, float %v124, i64 0
  %v126 = shufflevector <8 x float> %v125, <8 x float> poison, <8 x i32> zeroinitializer
  %v127 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v107, <8 x float> %v126, <8 x float> %v81)
  call void asm sideeffect "", "x,x"(<8 x float> %v126, <8 x float> %v127)
  store <8 x float> %v127, ptr %v37, align 32
  %v128 = getelementptr i8, ptr %v59, i64 48
  %v129 = load float, ptr %v128, align 4
  %v130 = insertelement <8 x float> poison, float %v129, i64 0
  %v131 = shufflevector <8 x float> %v130, <8 x float> poison, <8 x i32> zeroinitializer
  %v132 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v107, <8 x float> %v131, <8 x float> %v87)
  call void asm sideeffect "", "x,x"(<8 x float> %v131, <8 x float> %v132)
  store <8 x float> %v132, ptr %v38, align 32
  %v133 = getelementptr i8, ptr %v59, i64 52
  %v134 = load float, ptr %v133, align 4
  %v135 = insertelement <8 x float> poison, float %v134, i64 0
  %v136 = shufflevector <8 x float> %v135, <8 x float> poison, <8 x i32> zeroinitializer
  %v137 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v107, <8 x float> %v136, <8 x float> %v93)
  call void asm sideeffect "", "x,x"(<8 x float> %v136, <8 x float> %v137)
  store <8 x float> %v137, ptr %v39, align 32
  %v138 = getelementptr i8, ptr %v59, i64 56
  %v139 = load float, ptr %v138, align 4
  %v140 = insertelement <8 x float> poison, float %v139, i64 0
  %v141 = shufflevector <8 x float> %v140, <8 x float> poison, <8 x i32> zeroinitializer
  %v142 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v107, <8 x float> %v141, <8 x float> %v99)
  call void asm sideeffect "", "x,x"(<8 x float> %v141, <8 x float> %v142)
  store <8 x float> %v142, ptr %v40, align 32
  %v143 = getelementptr i8, ptr %v59, i64 60
  %v144 = load float, ptr %v143, align 4
  %v145 = insertelement <8 x float> poison, float %v144, i64 0
  %v146 = shufflevector <8 x float> %v145, <8 x float> poison, <8 x i32> zeroinitializer
  %v147 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v107, <8 x float> %v146, <8 x float> %v105)
  call void asm sideeffect "", "x,x"(<8 x float> %v146, <8 x float> %v147)
  store <8 x float> %v147, ptr %v41, align 32
  %v148 = getelementptr i8, ptr %v56, i64 648
  %v149 = call <8 x float> @llvm.masked.load.v8f32.p0(ptr %v148, i32 4, <8 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 false>, <8 x float> zeroinitializer)
  %v150 = getelementptr i8, ptr %v59, i64 64
  %v151 = load float, ptr %v150, align 4
  %v152 = insertelement <8 x float> poison, float %v151, i64 0
  %v153 = shufflevector <8 x float> %v152, <8 x float> poison, <8 x i32> zeroinitializer
  %v154 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v149, <8 x float> %v153, <8 x float> %v112)
  call void asm sideeffect "", "x,x"(<8 x float> %v153, <8 x float> %v154)
  store <8 x float> %v154, ptr %v34, align 32
  %v155 = getelementptr i8, ptr %v59, i64 68
  %v156 = load float, ptr %v155, align 4
  %v157 = insertelement <8 x float> poison, float %v156, i64 0
  %v158 = shufflevector <8 x float> %v157, <8 x float> poison, <8 x i32> zeroinitializer
  %v159 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v149, <8 x float> %v158, <8 x float> %v117)
  call void asm sideeffect "", "x,x"(<8 x float> %v158, <8 x float> %v159)
  store <8 x float> %v159, ptr %v35, align 32
  %v160 = getelementptr i8, ptr %v59, i64 72
  %v161 = load float, ptr %v160, align 4
  %v162 = insertelement <8 x float> poison, float %v161, i64 0
  %v163 = shufflevector <8 x float> %v162, <8 x float> poison, <8 x i32> zeroinitializer
  %v164 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v149, <8 x float> %v163, <8 x float> %v122)
  call void asm sideeffect "", "x,x"(<8 x float> %v163, <8 x float> %v164)
  store <8 x float> %v164, ptr %v36, align 32
  %v165 = getelementptr i8, ptr %v59, i64 76
  %v166 = load float, ptr %v165, align 4
  %v167 = insertelement <8 x float> poison, float %v166, i64 0
  %v168 = shufflevector <8 x float> %v167, <8 x float> poison, <8 x i32> zeroinitializer
  %v169 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v149, <8 x float> %v168, <8 x float> %v127)
  call void asm sideeffect "", "x,x"(<8 x float> %v168, <8 x float> %v169)
  store <8 x float> %v169, ptr %v37, align 32
  %v170 = getelementptr i8, ptr %v59, i64 80
  %v171 = load float, ptr %v170, align 4
  %v172 = insertelement <8 x float> poison, float %v171, i64 0
  %v173 = shufflevector <8 x float> %v172, <8 x float> poison, <8 x i32> zeroinitializer
  %v174 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v149, <8 x float> %v173, <8 x float> %v132)
  call void asm sideeffect "", "x,x"(<8 x float> %v173, <8 x float> %v174)
  store <8 x float> %v174, ptr %v38, align 32
  %v175 = getelementptr i8, ptr %v59, i64 84
  %v176 = load float, ptr %v175, align 4
  %v177 = insertelement <8 x float> poison, float %v176, i64 0
  %v178 = shufflevector <8 x float> %v177, <8 x float> poison, <8 x i32> zeroinitializer
  %v179 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v149, <8 x float> %v178, <8 x float> %v137)
  call void asm sideeffect "", "x,x"(<8 x float> %v178, <8 x float> %v179)
  store <8 x float> %v179, ptr %v39, align 32
  %v180 = getelementptr i8, ptr %v59, i64 88
  %v181 = load float, ptr %v180, align 4
  %v182 = insertelement <8 x float> poison, float %v181, i64 0
  %v183 = shufflevector <8 x float> %v182, <8 x float> poison, <8 x i32> zeroinitializer
  %v184 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v149, <8 x float> %v183, <8 x float> %v142)
  call void asm sideeffect "", "x,x"(<8 x float> %v183, <8 x float> %v184)
  store <8 x float> %v184, ptr %v40, align 32
  %v185 = getelementptr i8, ptr %v59, i64 92
  %v186 = load float, ptr %v185, align 4
  %v187 = insertelement <8 x float> poison, float %v186, i64 0
  %v188 = shufflevector <8 x float> %v187, <8 x float> poison, <8 x i32> zeroinitializer
  %v189 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v149, <8 x float> %v188, <8 x float> %v147)
  call void asm sideeffect "", "x,x"(<8 x float> %v188, <8 x float> %v189)
  store <8 x float> %v189, ptr %v41, align 32
  %v192 = getelementptr i8, ptr %v51, i64 96
  %v194 = getelementptr i8, ptr %v56, i64 4
  %v195 = getelementptr i8, ptr %v59, i64 96
  %v190 = icmp ne ptr %v192, %v193
  br i1 %v190, label %b44, label %b191, !llvm.loop !0
b191:
  %v198 = getelementptr i8, ptr %v50, i64 288
  %v200 = getelementptr i8, ptr %v55, i64 36
  %v201 = getelementptr i8, ptr %v58, i64 288
  %v196 = icmp ne ptr %v198, %v199
  br i1 %v196, label %b42, label %b197, !llvm.loop !0
b197:
  %v202 = load <8 x float>, ptr %v34, align 32
  %v203 = fcmp ogt <8 x float> splat (float 0x0000000000000000), %v202
  %v204 = select <8 x i1> %v203, <8 x float> splat (float 0x0000000000000000), <8 x float> %v202
  %v209 = shufflevector <8 x float> %v204, <8 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  store <4 x float> %v209, ptr %v208, align 4
  %v210 = shufflevector <8 x float> %v204, <8 x float> poison, <2 x i32> <i32 4, i32 5>
  %v211 = getelementptr i8, ptr %v208, i64 16
  store <2 x float> %v210, ptr %v211, align 4
  %v212 = extractelement <8 x float> %v204, i64 6
  %v213 = getelementptr i8, ptr %v208, i64 24
  store float %v212, ptr %v213, align 4
  %v214 = load <8 x float>, ptr %v35, align 32
  %v215 = fcmp ogt <8 x float> splat (float 0x0000000000000000), %v214
  %v216 = select <8 x i1> %v215, <8 x float> splat (float 0x0000000000000000), <8 x float> %v214
  %v217 = getelementptr i8, ptr %v208, i64 196
  %v218 = shufflevector <8 x float> %v216, <8 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  store <4 x float> %v218, ptr %v217, align 4
  %v219 = shufflevector <8 x float> %v216, <8 x float> poison, <2 x i32> <i32 4, i32 5>
  %v220 = getelementptr i8, ptr %v208, i64 212
  store <2 x float> %v219, ptr %v220, align 4
  %v221 = extractelement <8 x float> %v216, i64 6
  %v222 = getelementptr i8, ptr %v208, i64 220
  store float %v221, ptr %v222, align 4
  %v223 = load <8 x float>, ptr %v36, align 32
  %v224 = fcmp ogt <8 x float> splat (float 0x0000000000000000), %v223
  %v225 = select <8 x i1> %v224, <8 x float> splat (float 0x0000000000000000), <8 x float> %v223
  %v226 = getelementptr i8, ptr %v208, i64 392
  %v227 = shufflevector <8 x float> %v225, <8 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  store <4 x float> %v227, ptr %v226, align 4
  %v228 = shufflevector <8 x float> %v225, <8 x float> poison, <2 x i32> <i32 4, i32 5>
  %v229 = getelementptr i8, ptr %v208, i64 408
  store <2 x float> %v228, ptr %v229, align 4
  %v230 = extractelement <8 x float> %v225, i64 6
  %v231 = getelementptr i8, ptr %v208, i64 416
  store float %v230, ptr %v231, align 4
  %v232 = load <8 x float>, ptr %v37, align 32
  %v233 = fcmp ogt <8 x float> splat (float 0x0000000000000000), %v232
  %v234 = select <8 x i1> %v233, <8 x float> splat (float 0x0000000000000000), <8 x float> %v232
  %v235 = getelementptr i8, ptr %v208, i64 588
  %v236 = shufflevector <8 x float> %v234, <8 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  store <4 x float> %v236, ptr %v235, align 4
  %v237 = shufflevector <8 x float> %v234, <8 x float> poison, <2 x i32> <i32 4, i32 5>
  %v238 = getelementptr i8, ptr %v208, i64 604
  store <2 x float> %v237, ptr %v238, align 4
  %v239 = extractelement <8 x float> %v234, i64 6
  %v240 = getelementptr i8, ptr %v208, i64 612
  store float %v239, ptr %v240, align 4
  %v241 = load <8 x float>, ptr %v38, align 32
  %v242 = fcmp ogt <8 x float> splat (float 0x0000000000000000), %v241
  %v243 = select <8 x i1> %v242, <8 x float> splat (float 0x0000000000000000), <8 x float> %v241
  %v244 = getelementptr i8, ptr %v208, i64 784
  %v245 = shufflevector <8 x float> %v243, <8 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  store <4 x float> %v245, ptr %v244, align 4
  %v246 = shufflevector <8 x float> %v243, <8 x float> poison, <2 x i32> <i32 4, i32 5>
  %v247 = getelementptr i8, ptr %v208, i64 800
  store <2 x float> %v246, ptr %v247, align 4
  %v248 = extractelement <8 x float> %v243, i64 6
  %v249 = getelementptr i8, ptr %v208, i64 808
  store float %v248, ptr %v249, align 4
  %v250 = load <8 x float>, ptr %v39, align 32
  %v251 = fcmp ogt <8 x float> splat (float 0x0000000000000000), %v250
  %v252 = select <8 x i1> %v251, <8 x float> splat (float 0x0000000000000000), <8 x float> %v250
  %v253 = getelementptr i8, ptr %v208, i64 980
  %v254 = shufflevector <8 x float> %v252, <8 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  store <4 x float> %v254, ptr %v253, align 4
  %v255 = shufflevector <8 x float> %v252, <8 x float> poison, <2 x i32> <i32 4, i32 5>
  %v256 = getelementptr i8, ptr %v208, i64 996
  store <2 x float> %v255, ptr %v256, align 4
  %v257 = extractelement <8 x float> %v252, i64 6
  %v258 = getelementptr i8, ptr %v208, i64 1004
  store float %v257, ptr %v258, align 4
  %v259 = load <8 x float>, ptr %v40, align 32
  %v260 = fcmp ogt <8 x float> splat (float 0x0000000000000000), %v259
  %v261 = select <8 x i1> %v260, <8 x float> splat (float 0x0000000000000000), <8 x float> %v259
  %v262 = getelementptr i8, ptr %v208, i64 1176
  %v263 = shufflevector <8 x float> %v261, <8 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  store <4 x float> %v263, ptr %v262, align 4
  %v264 = shufflevector <8 x float> %v261, <8 x float> poison, <2 x i32> <i32 4, i32 5>
  %v265 = getelementptr i8, ptr %v208, i64 1192
  store <2 x float> %v264, ptr %v265, align 4
  %v266 = extractelement <8 x float> %v261, i64 6
  %v267 = getelementptr i8, ptr %v208, i64 1200
  store float %v266, ptr %v267, align 4
  %v268 = load <8 x float>, ptr %v41, align 32
  %v269 = fcmp ogt <8 x float> splat (float 0x0000000000000000), %v268
  %v270 = select <8 x i1> %v269, <8 x float> splat (float 0x0000000000000000), <8 x float> %v268
  %v271 = getelementptr i8, ptr %v208, i64 1372
  %v272 = shufflevector <8 x float> %v270, <8 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  store <4 x float> %v272, ptr %v271, align 4
  %v273 = shufflevector <8 x float> %v270, <8 x float> poison, <2 x i32> <i32 4, i32 5>
  %v274 = getelementptr i8, ptr %v208, i64 1388
  store <2 x float> %v273, ptr %v274, align 4
  %v275 = extractelement <8 x float> %v270, i64 6
  %v276 = getelementptr i8, ptr %v208, i64 1396
  store float %v275, ptr %v276, align 4
  %v279 = getelementptr i8, ptr %v49, i64 64
  %v281 = getelementptr i8, ptr %v54, i64 36
  %v282 = getelementptr i8, ptr %v208, i64 28
  %v277 = icmp ne ptr %v279, %v280
  br i1 %v277, label %b32, label %b278, !llvm.loop !0
b278:
  %v285 = getelementptr i8, ptr %v48, i64 864
  %v286 = getelementptr i8, ptr %v207, i64 1568
  %v287 = add nuw nsw i64 %v2, 1
  %v283 = icmp ult i64 %v287, %stop
  br i1 %v283, label %b1, label %b284, !llvm.loop !0
b284:
  ret void
}

define internal void @convolution.main(ptr noalias align 64 %p0, ptr noalias align 64 %p1, ptr noalias align 64 %p2, ptr %workspace, ptr %slice, i32 %threads) nounwind {
entry:
  %v1 = alloca [5 x i64], align 8
  %v2 = icmp sgt i32 %threads, 1
  br i1 %v2, label %b3, label %b4
b3:
  %v6 = getelementptr i64, ptr %v1, i64 0
  store ptr %p2, ptr %v6
  %v7 = getelementptr i64, ptr %v1, i64 1
  store ptr %p1, ptr %v7
  %v8 = getelementptr i64, ptr %v1, i64 2
  store ptr %p0, ptr %v8
  %v9 = getelementptr i64, ptr %v1, i64 3
  store ptr %workspace, ptr %v9
  %v10 = getelementptr i64, ptr %v1, i64 4
  store ptr %slice, ptr %v10
  %v11 = icmp slt i32 %threads, 2
  %v12 = select i1 %v11, i32 %threads, i32 2
  call void @GOMP_parallel(ptr @convolution.par0, ptr %v1, i32 %v12, i32 0)
  br label %b5
b4:
  call void @convolution.par0.body(ptr %p2, ptr %p1, ptr %p0, ptr %workspace, ptr %slice, i64 0, i64 2)
  br label %b5
b5:
  ret void
}

define internal void @convolution.par0(ptr %context) nounwind {
  %f0 = getelementptr i64, ptr %context, i64 0
  %p2 = load ptr, ptr %f0
  %f1 = getelementptr i64, ptr %context, i64 1
  %p1 = load ptr, ptr %f1
  %f2 = getelementptr i64, ptr %context, i64 2
  %p0 = load ptr, ptr %f2
  %f3 = getelementptr i64, ptr %context, i64 3
  %workspace = load ptr, ptr %f3
  %f4 = getelementptr i64, ptr %context, i64 4
  %slices = load ptr, ptr %f4
  %id = call i32 @omp_get_thread_num()
  %team = call i32 @omp_get_num_threads()
  %t = zext i32 %id to i64
  %n = zext i32 %team to i64
  %a = mul i64 %t, 2
  %b = add i64 %a, 2
  %first = udiv i64 %a, %n
  %stop = udiv i64 %b, %n
  %offset = mul i64 %t, 0
  %slice = getelementptr i8, ptr %slices, i64 %offset
  %some = icmp ult i64 %first, %stop
  br i1 %some, label %work, label %done
work:
  call void @convolution.par0.body(ptr %p2, ptr %p1, ptr %p0, ptr %workspace, ptr %slice, i64 %first, i64 %stop)
  br label %done
done:
  ret void
}

define void @convolution(ptr %args, ptr %workspace, i32 %threads) nounwind {
  %a0 = getelementptr ptr, ptr %args, i64 0
  %p0 = load ptr, ptr %a0
  %a1 = getelementptr ptr, ptr %args, i64 1
  %p1 = load ptr, ptr %a1
  %a2 = getelementptr ptr, ptr %args, i64 2
  %p2 = load ptr, ptr %a2
  %slice = getelementptr i8, ptr %workspace, i64 0
  call void @convolution.main(ptr %p0, ptr %p1, ptr %p2, ptr %workspace, ptr %slice, i32 %threads)
  ret void
}

!0 = distinct !{!0, !1, !2}
!1 = !{!"llvm.loop.unroll.disable"}
!2 = !{!"llvm.loop.vectorize.enable", i1 false}
