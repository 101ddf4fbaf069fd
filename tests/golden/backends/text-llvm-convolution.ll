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
  %v284 = getelementptr i8, ptr %p1, i64 1728
  br label %b1
b1:
  %v48 = phi ptr [ %p1, %entry ], [ %v283, %b276 ]
  %v205 = phi ptr [ %p2, %entry ], [ %v285, %b276 ]
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
  %v278 = getelementptr i8, ptr %v48, i64 448
  br label %b34
b34:
  %v49 = phi ptr [ %v48, %b30 ], [ %v277, %b197 ]
  %v54 = phi ptr [ %v3, %b30 ], [ %v279, %b197 ]
  %v206 = phi ptr [ %v205, %b30 ], [ %v280, %b197 ]
  store <8 x float> splat (float 0x0000000000000000), ptr %v36, align 32
  store <8 x float> splat (float 0x0000000000000000), ptr %v37, align 32
  store <8 x float> splat (float 0x0000000000000000), ptr %v38, align 32
  store <8 x float> splat (float 0x0000000000000000), ptr %v39, align 32
  store <8 x float> splat (float 0x0000000000000000), ptr %v40, align 32
  store <8 x float> splat (float 0x0000000000000000), ptr %v41, align 32
  store <8 x float> splat (float 0x0000000000000000), ptr %v42, align 32
  store <8 x float> splat (float 0x0000000000000000), ptr %v43, align 32
  %v199 = getelementptr i8, ptr %v49, i64 864
  br label %b44
b44:
  %v50 = phi ptr [ %v49, %b34 ], [ %v198, %b191 ]
  %v55 = phi ptr [ %v54, %b34 ], [ %v200, %b191 ]
  %v58 = phi ptr [ %v48, %b34 ], [ %v201, %b191 ]
  %v193 = getelementptr i8, ptr %v50, i64 288
  br label %b46
b46:
  %v51 = phi ptr [ %v50, %b44 ], [ %v192, %b46 ]
  %v56 = phi ptr [ %v55, %b44 ], [ %v194, %b46 ]
  %v59 = phi ptr [ %v58, %b44 ], [ %v195, %b46 ]
  %v52 = getelementptr i8, ptr %v51, i64 864
  call void @llvm.prefetch.p0(ptr %v52, i32 0, i32 2, i32 1)
  %v53 = load <8 x float>, ptr %v36, align 32
  %v57 = load <8 x float>, ptr %v56, align 4
  %v60 = load float, ptr %v59, align 4
  %v61 = insertelement <8 x float> poison, float %v60, i64 0
  %v62 = shufflevector <8 x float> %v61, <8 x float> poison, <8 x i32> zeroinitializer
  %v63 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v57, <8 x float> %v62, <8 x float> %v53)
  call void asm sideeffect "", "x,x"(<8 x float> %v62, <8 x float> %v63)
  store <8 x float> %v63, ptr %v36, align 32
  %v64 = load <8 x float>, ptr %v37, align 32
  %v65 = getelementptr i8, ptr %v59, i64 4
  %v66 = load float, ptr %v65, align 4
  %v67 = insertelement <8 x float> poison, float %v66, i64 0
  %v68 = shufflevector <8 x float> %v67, <8 x float> poison, <8 x i32> zeroinitializer
  %v69 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v57, <8 x float> %v68, <8 x float> %v64)
  call void asm sideeffect "", "x,x"(<8 x float> %v68, <8 x float> %v69)
  store <8 x float> %v69, ptr %v37, align 32
  %v70 = load <8 x float>, ptr %v38, align 32
  %v71 = getelementptr i8, ptr %v59, i64 8
  %v72 = load float, ptr %v71, align 4
  %v73 = insertelement <8 x float> poison, float %v72, i64 0
  %v74 = shufflevector <8 x float> %v73, <8 x float> poison, <8 x i32> zeroinitializer
  %v75 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v57, <8 x float> %v74, <8 x float> %v70)
  call void asm sideeffect "", "x,x"(<8 x float> %v74, <8 x float> %v75)
  store <8 x float> %v75, ptr %v38, align 32
  %v76 = load <8 x float>, ptr %v39, align 32
  %v77 = getelementptr i8, ptr %v59, i64 12
  %v78 = load float, ptr %v77, align 4
  %v79 = insertelement <8 x float> poison, float %v78, i64 0
  %v80 = shufflevector <8 x float> %v79, <8 x float> poison, <8 x i32> zeroinitializer
  %v81 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v57, <8 x float> %v80, <8 x float> %v76)
  call void asm sideeffect "", "x,x"(<8 x float> %v80, <8 x float> %v81)
  store <8 x float> %v81, ptr %v39, align 32
  %v82 = load <8 x float>, ptr %v40, align 32
  %v83 = getelementptr i8, ptr %v59, i64 16
  %v84 = load float, ptr %v83, align 4
  %v85 = insertelement <8 x float> poison, float %v84, i64 0
  %v86 = shufflevector <8 x float> %v85, <8 x float> poison, <8 x i32> zeroinitializer
  %v87 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v57, <8 x float> %v86, <8 x float> %v82)
  call void asm sideeffect "", "x,x"(<8 x float> %v86, <8 x float> %v87)
  store <8 x float> %v87, ptr %v40, align 32
  %v88 = load <8 x float>, ptr %v41, align 32
  %v89 = getelementptr i8, ptr %v59, i64 20
  %v90 = load float, ptr %v89, align 4
  %v91 = insertelement <8 x float> poison, float %v90, i64 0
  %v92 = shufflevector <8 x float> %v91, <8 x float> poison, <8 x i32> zeroinitializer
  %v93 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v57, <8 x float> %v92, <8 x float> %v88)
  call void asm sideeffect "", "x,x"(<8 x float> %v92, <8 x float> %v93)
  store <8 x float> %v93, ptr %v41, align 32
  %v94 = load <8 x float>, ptr %v42, align 32
  %v95 = getelementptr i8, ptr %v59, i64 24
  %v96 = load float, ptr %v95, align 4
  %v97 = insertelement <8 x float> poison, float %v96, i64 0
  %v98 = shufflevector <8 x float> %v97, <8 x float> poison, <8 x i32> zeroinitializer
  %v99 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v57, <8 x float> %v98, <8 x float> %v94)
  call void asm sideeffect "", "x,x"(<8 x float> %v98, <8 x float> %v99)
  store <8 x float> %v99, ptr %v42, align 32
  %v100 = load <8 x float>, ptr %v43, align 32
  %v101 = getelementptr i8, ptr %v59, i64 28
  %v102 = load float, ptr %v101, align 4
  %v103 = insertelement <8 x float> poison, float %v102, i64 0
  %v104 = shufflevector <8 x float> %v103, <8 x float> poison, <8 x i32> zeroinitializer
  %v105 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v57, <8 x float> %v104, <8 x float> %v100)
  call void asm sideeffect "", "x,x"(<8 x float> %v104, <8 x float> %v105)
  store <8 x float> %v105, ptr %v43, align 32
  %v106 = getelementptr i8, ptr %v56, i64 324
  %v107 = load <8 x float>, ptr %v106, align 4
  %v108 = getelementptr i8, ptr %v59, i64 32
  %v109 = load float, ptr %v108, align 4
  %v110 = insertelement <8 x float> poison, float %v109, i64 0
  %v111 = shufflevector <8 x float> %v110, <8 x float> poison, <8 x i32> zeroinitializer
  %v112 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v107, <8 x float> %v111, <8 x float> %v63)
  call void asm sideeffect "", "x,x"(<8 x float> %v111, <8 x float> %v112)
  store <8 x float> %v112, ptr %v36, align 32
  %v113 = getelementptr i8, ptr %v59, i64 36
  %v114 = load float, ptr %v113, align 4
  %v115 = insertelement <8 x float> poison, float %v114, i64 0
  %v116 = shufflevector <8 x float> %v115, <8 x float> poison, <8 x i32> zeroinitializer
  %v117 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v107, <8 x float> %v116, <8 x float> %v69)
  call void asm sideeffect "", "x,x"(<8 x float> %v116, <8 x float> %v117)
  store <8 x float> %v117, ptr %v37, align 32
  %v118 = getelementptr i8, ptr %v59, i64 40
  %v119 = load float, ptr %v118, align 4
  %v120 = insertelement <8 x float> poison, float %v119, i64 0
  %v121 = shufflevector <8 x float> %v120, <8 x float> poison, <8 x i32> zeroinitializer
  %v122 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v107, <8 x float> %v121, <8 x float> %v75)
  call void asm sideeffect "", "x,x"(<8 x float> %v121, <8 x float> %v122)
  store <8 x float> %v122, ptr %v38, align 32
  %v123 = getelementptr i8, ptr %v59, i64 44
  %v124 = load float, ptr %v123, align 4
  %v125 = insertelement <8 x float> poison, float %v124, i64 0
  %v126 = shufflevector <8 x float> %v125, <8 x float> poison, <8 x i32> zeroinitializer
  %v127 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v107, <8 x float> %v126, <8 x float> %v81)
  call void asm sideeffect "", "x,x"(<8 x float> %v126, <8 x float> %v127)
  store <8 x float> %v127, ptr %v39, align 32
  %v128 = getelementptr i8, ptr %v59, i64 48
  %v129 = load float, ptr %v128, align 4
  %v130 = insertelement <8 x float> poison, float %v129, i64 0
  %v131 = shufflevector <8 x float> %v130, <8 x float> poison, <8 x i32> zeroinitializer
  %v132 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v107, <8 x float> %v131, <8 x float> %v87)
  call void asm sideeffect "", "x,x"(<8 x float> %v131, <8 x float> %v132)
  store <8 x float> %v132, ptr %v40, align 32
  %v133 = getelementptr i8, ptr %v59, i64 52
  %v134 = load float, ptr %v133, align 4
  %v135 = insertelement <8 x float> poison, float %v134, i64 0
  %v136 = shufflevector <8 x float> %v135, <8 x float> poison, <8 x i32> zeroinitializer
  %v137 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v107, <8 x float> %v136, <8 x float> %v93)
  call void asm sideeffect "", "x,x"(<8 x float> %v136, <8 x float> %v137)
  store <8 x float> %v137, ptr %v41, align 32
  %v138 = getelementptr i8, ptr %v59, i64 56
  %v139 = load float, ptr %v138, align 4
  %v140 = insertelement <8 x float> poison, float %v139, i64 0
  %v141 = shufflevector <8 x float> %v140, <8 x float> poison, <8 x i32> zeroinitializer
  %v142 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v107, <8 x float> %v141, <8 x float> %v99)
  call void asm sideeffect "", "x,x"(<8 x float> %v141, <8 x float> %v142)
  store <8 x float> %v142, ptr %v42, align 32
  %v143 = getelementptr i8, ptr %v59, i64 60
  %v144 = load float, ptr %v143, align 4
  %v145 = insertelement <8 x float> poison, float %v144, i64 0
  %v146 = shufflevector <8 x float> %v145, <8 x float> poison, <8 x i32> zeroinitializer
  %v147 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v107, <8 x float> %v146, <8 x float> %v105)
  call void asm sideeffect "", "x,x"(<8 x float> %v146, <8 x float> %v147)
  store <8 x float> %v147, ptr %v43, align 32
  %v148 = getelementptr i8, ptr %v56, i64 648
  %v149 = call <8 x float> @llvm.masked.load.v8f32.p0(ptr %v148, i32 4, <8 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 false>, <8 x float> zeroinitializer)
  %v150 = getelementptr i8, ptr %v59, i64 64
  %v151 = load float, ptr %v150, align 4
  %v152 = insertelement <8 x float> poison, float %v151, i64 0
  %v153 = shufflevector <8 x float> %v152, <8 x float> poison, <8 x i32> zeroinitializer
  %v154 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v149, <8 x float> %v153, <8 x float> %v112)
  call void asm sideeffect "", "x,x"(<8 x float> %v153, <8 x float> %v154)
  store <8 x float> %v154, ptr %v36, align 32
  %v155 = getelementptr i8, ptr %v59, i64 68
  %v156 = load float, ptr %v155, align 4
  %v157 = insertelement <8 x float> poison, float %v156, i64 0
  %v158 = shufflevector <8 x float> %v157, <8 x float> poison, <8 x i32> zeroinitializer
  %v159 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v149, <8 x float> %v158, <8 x float> %v117)
  call void asm sideeffect "", "x,x"(<8 x float> %v158, <8 x float> %v159)
  store <8 x float> %v159, ptr %v37, align 32
  %v160 = getelementptr i8, ptr %v59, i64 72
  %v161 = load float, ptr %v160, align 4
  %v162 = insertelement <8 x float> poison, float %v161, i64 0
  %v163 = shufflevector <8 x float> %v162, <8 x float> poison, <8 x i32> zeroinitializer
  %v164 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v149, <8 x float> %v163, <8 x float> %v122)
  call void asm sideeffect "", "x,x"(<8 x float> %v163, <8 x float> %v164)
  store <8 x float> %v164, ptr %v38, align 32
  %v165 = getelementptr i8, ptr %v59, i64 76
  %v166 = load float, ptr %v165, align 4
  %v167 = insertelement <8 x float> poison, float %v166, i64 0
  %v168 = shufflevector <8 x float> %v167, <8 x float> poison, <8 x i32> zeroinitializer
  %v169 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v149, <8 x float> %v168, <8 x float> %v127)
  call void asm sideeffect "", "x,x"(<8 x float> %v168, <8 x float> %v169)
  store <8 x float> %v169, ptr %v39, align 32
  %v170 = getelementptr i8, ptr %v59, i64 80
  %v171 = load float, ptr %v170, align 4
  %v172 = insertelement <8 x float> poison, float %v171, i64 0
  %v173 = shufflevector <8 x float> %v172, <8 x float> poison, <8 x i32> zeroinitializer
  %v174 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v149, <8 x float> %v173, <8 x float> %v132)
  call void asm sideeffect "", "x,x"(<8 x float> %v173, <8 x float> %v174)
  store <8 x float> %v174, ptr %v40, align 32
  %v175 = getelementptr i8, ptr %v59, i64 84
  %v176 = load float, ptr %v175, align 4
  %v177 = insertelement <8 x float> poison, float %v176, i64 0
  %v178 = shufflevector <8 x float> %v177, <8 x float> poison, <8 x i32> zeroinitializer
  %v179 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v149, <8 x float> %v178, <8 x float> %v137)
  call void asm sideeffect "", "x,x"(<8 x float> %v178, <8 x float> %v179)
  store <8 x float> %v179, ptr %v41, align 32
  %v180 = getelementptr i8, ptr %v59, i64 88
  %v181 = load float, ptr %v180, align 4
  %v182 = insertelement <8 x float> poison, float %v181, i64 0
  %v183 = shufflevector <8 x float> %v182, <8 x float> poison, <8 x i32> zeroinitializer
  %v184 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v149, <8 x float> %v183, <8 x float> %v142)
  call void asm sideeffect "", "x,x"(<8 x float> %v183, <8 x float> %v184)
  store <8 x float> %v184, ptr %v42, align 32
  %v185 = getelementptr i8, ptr %v59, i64 92
  %v186 = load float, ptr %v185, align 4
  %v187 = insertelement <8 x float> poison, float %v186, i64 0
  %v188 = shufflevector <8 x float> %v187, <8 x float> poison, <8 x i32> zeroinitializer
  %v189 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v149, <8 x float> %v188, <8 x float> %v147)
  call void asm sideeffect "", "x,x"(<8 x float> %v188, <8 x float> %v189)
  store <8 x float> %v189, ptr %v43, align 32
  %v192 = getelementptr i8, ptr %v51, i64 96
  %v194 = getelementptr i8, ptr %v56, i64 4
  %v195 = getelementptr i8, ptr %v59, i64 96
  %v190 = icmp ne ptr %v192, %v193
  br i1 %v190, label %b46, label %b191, !llvm.loop !0
b191:
  %v198 = getelementptr i8, ptr %v50, i64 288
  %v200 = getelementptr i8, ptr %v55, i64 36
  %v201 = getelementptr i8, ptr %v58, i64 288
  %v196 = icmp ne ptr %v198, %v199
  br i1 %v196, label %b44, label %b197, !llvm.loop !0
b197:
  %v202 = load <8 x float>, ptr %v36, align 32
  %v203 = fcmp ogt <8 x float> splat (float 0x0000000000000000), %v202
  %v204 = select <8 x i1> %v203, <8 x float> splat (float 0x0000000000000000), <8 x float> %v202
  %v207 = shufflevector <8 x float> %v204, <8 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  store <4 x float> %v207, ptr %v206, align 4
  %v208 = shufflevector <8 x float> %v204, <8 x float> poison, <2 x i32> <i32 4, i32 5>
  %v209 = getelementptr i8, ptr %v206, i64 16
  store <2 x float> %v208, ptr %v209, align 4
  %v210 = extractelement <8 x float> %v204, i64 6
  %v211 = getelementptr i8, ptr %v206, i64 24
  store float %v210, ptr %v211, align 4
  %v212 = load <8 x float>, ptr %v37, align 32
  %v213 = fcmp ogt <8 x float> splat (float 0x0000000000000000), %v212
  %v214 = select <8 x i1> %v213, <8 x float> splat (float 0x0000000000000000), <8 x float> %v212
  %v215 = getelementptr i8, ptr %v206, i64 196
  %v216 = shufflevector <8 x float> %v214, <8 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  store <4 x float> %v216, ptr %v215, align 4
  %v217 = shufflevector <8 x float> %v214, <8 x float> poison, <2 x i32> <i32 4, i32 5>
  %v218 = getelementptr i8, ptr %v206, i64 212
  store <2 x float> %v217, ptr %v218, align 4
  %v219 = extractelement <8 x float> %v214, i64 6
  %v220 = getelementptr i8, ptr %v206, i64 220
  store float %v219, ptr %v220, align 4
  %v221 = load <8 x float>, ptr %v38, align 32
  %v222 = fcmp ogt <8 x float> splat (float 0x0000000000000000), %v221
  %v223 = select <8 x i1> %v222, <8 x float> splat (float 0x0000000000000000), <8 x float> %v221
  %v224 = getelementptr i8, ptr %v206, i64 392
  %v225 = shufflevector <8 x float> %v223, <8 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  store <4 x float> %v225, ptr %v224, align 4
  %v226 = shufflevector <8 x float> %v223, <8 x float> poison, <2 x i32> <i32 4, i32 5>
  %v227 = getelementptr i8, ptr %v206, i64 408
  store <2 x float> %v226, ptr %v227, align 4
  %v228 = extractelement <8 x float> %v223, i64 6
  %v229 = getelementptr i8, ptr %v206, i64 416
  store float %v228, ptr %v229, align 4
  %v230 = load <8 x float>, ptr %v39, align 32
  %v231 = fcmp ogt <8 x float> splat (float 0x0000000000000000), %v230
  %v232 = select <8 x i1> %v231, <8 x float> splat (float 0x0000000000000000), <8 x float> %v230
  %v233 = getelementptr i8, ptr %v206, i64 588
  %v234 = shufflevector <8 x float> %v232, <8 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  store <4 x float> %v234, ptr %v233, align 4
  %v235 = shufflevector <8 x float> %v232, <8 x float> poison, <2 x i32> <i32 4, i32 5>
  %v236 = getelementptr i8, ptr %v206, i64 604
  store <2 x float> %v235, ptr %v236, align 4
  %v237 = extractelement <8 x float> %v232, i64 6
  %v238 = getelementptr i8, ptr %v206, i64 612
  store float %v237, ptr %v238, align 4
  %v239 = load <8 x float>, ptr %v40, align 32
  %v240 = fcmp ogt <8 x float> splat (float 0x0000000000000000), %v239
  %v241 = select <8 x i1> %v240, <8 x float> splat (float 0x0000000000000000), <8 x float> %v239
  %v242 = getelementptr i8, ptr %v206, i64 784
  %v243 = shufflevector <8 x float> %v241, <8 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  store <4 x float> %v243, ptr %v242, align 4
  %v244 = shufflevector <8 x float> %v241, <8 x float> poison, <2 x i32> <i32 4, i32 5>
  %v245 = getelementptr i8, ptr %v206, i64 800
  store <2 x float> %v244, ptr %v245, align 4
  %v246 = extractelement <8 x float> %v241, i64 6
  %v247 = getelementptr i8, ptr %v206, i64 808
  store float %v246, ptr %v247, align 4
  %v248 = load <8 x float>, ptr %v41, align 32
  %v249 = fcmp ogt <8 x float> splat (float 0x0000000000000000), %v248
  %v250 = select <8 x i1> %v249, <8 x float> splat (float 0x0000000000000000), <8 x float> %v248
  %v251 = getelementptr i8, ptr %v206, i64 980
  %v252 = shufflevector <8 x float> %v250, <8 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  store <4 x float> %v252, ptr %v251, align 4
  %v253 = shufflevector <8 x float> %v250, <8 x float> poison, <2 x i32> <i32 4, i32 5>
  %v254 = getelementptr i8, ptr %v206, i64 996
  store <2 x float> %v253, ptr %v254, align 4
  %v255 = extractelement <8 x float> %v250, i64 6
  %v256 = getelementptr i8, ptr %v206, i64 1004
  store float %v255, ptr %v256, align 4
  %v257 = load <8 x float>, ptr %v42, align 32
  %v258 = fcmp ogt <8 x float> splat (float 0x0000000000000000), %v257
  %v259 = select <8 x i1> %v258, <8 x float> splat (float 0x0000000000000000), <8 x float> %v257
  %v260 = getelementptr i8, ptr %v206, i64 1176
  %v261 = shufflevector <8 x float> %v259, <8 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  store <4 x float> %v261, ptr %v260, align 4
  %v262 = shufflevector <8 x float> %v259, <8 x float> poison, <2 x i32> <i32 4, i32 5>
  %v263 = getelementptr i8, ptr %v206, i64 1192
  store <2 x float> %v262, ptr %v263, align 4
  %v264 = extractelement <8 x float> %v259, i64 6
  %v265 = getelementptr i8, ptr %v206, i64 1200
  store float %v264, ptr %v265, align 4
  %v266 = load <8 x float>, ptr %v43, align 32
  %v267 = fcmp ogt <8 x float> splat (float 0x0000000000000000), %v266
  %v268 = select <8 x i1> %v267, <8 x float> splat (float 0x0000000000000000), <8 x float> %v266
  %v269 = getelementptr i8, ptr %v206, i64 1372
  %v270 = shufflevector <8 x float> %v268, <8 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  store <4 x float> %v270, ptr %v269, align 4
  %v271 = shufflevector <8 x float> %v268, <8 x float> poison, <2 x i32> <i32 4, i32 5>
  %v272 = getelementptr i8, ptr %v206, i64 1388
  store <2 x float> %v271, ptr %v272, align 4
  %v273 = extractelement <8 x float> %v268, i64 6
  %v274 = getelementptr i8, ptr %v206, i64 1396
  store float %v273, ptr %v274, align 4
  %v277 = getelementptr i8, ptr %v49, i64 64
  %v279 = getelementptr i8, ptr %v54, i64 36
  %v280 = getelementptr i8, ptr %v206, i64 28
  %v275 = icmp ne ptr %v277, %v278
  br i1 %v275, label %b34, label %b276, !llvm.loop !0
b276:
  %v283 = getelementptr i8, ptr %v48, i64 864
  %v285 = getelementptr i8, ptr %v205, i64 1568
  %v281 = icmp ne ptr %v283, %v284
  br i1 %v281, label %b1, label %b282, !llvm.loop !0
b282:
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
