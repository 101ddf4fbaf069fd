declare <8 x float> @llvm.masked.load.v8f32.p0(ptr, i32 immarg, <8 x i1>, <8 x float>)
declare void @llvm.prefetch.p0(ptr, i32, i32, i32)
declare <8 x float> @llvm.fma.v8f32(<8 x float>, <8 x float>, <8 x float>)
define internal void @convolution.main(ptr noalias align 64 %p0, ptr noalias align 64 %p1, ptr noalias align 64 %p2, ptr %workspace, ptr %slice, i32 %threads) nounwind {
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
  %v282 = getelementptr i8, ptr %p1, i64 1728
  br label %b1
b1:
  %v46 = phi ptr [ %p1, %entry ], [ %v281, %b274 ]
  %v203 = phi ptr [ %p2, %entry ], [ %v283, %b274 ]
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
  %v276 = getelementptr i8, ptr %v46, i64 448
  br label %b32
b32:
  %v47 = phi ptr [ %v46, %b28 ], [ %v275, %b195 ]
  %v52 = phi ptr [ %v3, %b28 ], [ %v277, %b195 ]
  %v204 = phi ptr [ %v203, %b28 ], [ %v278, %b195 ]
  store <8 x float> splat (float 0x0000000000000000), ptr %v34, align 32
  store <8 x float> splat (float 0x0000000000000000), ptr %v35, align 32
  store <8 x float> splat (float 0x0000000000000000), ptr %v36, align 32
  store <8 x float> splat (float 0x0000000000000000), ptr %v37, align 32
  store <8 x float> splat (float 0x0000000000000000), ptr %v38, align 32
  store <8 x float> splat (float 0x0000000000000000), ptr %v39, align 32
  store <8 x float> splat (float 0x0000000000000000), ptr %v40, align 32
  store <8 x float> splat (float 0x0000000000000000), ptr %v41, align 32
  %v197 = getelementptr i8, ptr %v47, i64 864
  br label %b42
b42:
  %v48 = phi ptr [ %v47, %b32 ], [ %v196, %b189 ]
  %v53 = phi ptr [ %v52, %b32 ], [ %v198, %b189 ]
  %v56 = phi ptr [ %v46, %b32 ], [ %v199, %b189 ]
  %v191 = getelementptr i8, ptr %v48, i64 288
  br label %b44
b44:
  %v49 = phi ptr [ %v48, %b42 ], [ %v190, %b44 ]
  %v54 = phi ptr [ %v53, %b42 ], [ %v192, %b44 ]
  %v57 = phi ptr [ %v56, %b42 ], [ %v193, %b44 ]
  %v50 = getelementptr i8, ptr %v49, i64 864
  call void @llvm.prefetch.p0(ptr %v50, i32 0, i32 2, i32 1)
  %v51 = load <8 x float>, ptr %v34, align 32
  %v55 = load <8 x float>, ptr %v54, align 4
  %v58 = load float, ptr %v57, align 4
  %v59 = insertelement <8 x float> poison, float %v58, i64 0
  %v60 = shufflevector <8 x float> %v59, <8 x float> poison, <8 x i32> zeroinitializer
  %v61 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v55, <8 x float> %v60, <8 x float> %v51)
  call void asm sideeffect "", "x,x"(<8 x float> %v60, <8 x float> %v61)
  store <8 x float> %v61, ptr %v34, align 32
  %v62 = load <8 x float>, ptr %v35, align 32
  %v63 = getelementptr i8, ptr %v57, i64 4
  %v64 = load float, ptr %v63, align 4
  %v65 = insertelement <8 x float> poison, float %v64, i64 0
  %v66 = shufflevector <8 x float> %v65, <8 x float> poison, <8 x i32> zeroinitializer
  %v67 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v55, <8 x float> %v66, <8 x float> %v62)
  call void asm sideeffect "", "x,x"(<8 x float> %v66, <8 x float> %v67)
  store <8 x float> %v67, ptr %v35, align 32
  %v68 = load <8 x float>, ptr %v36, align 32
  %v69 = getelementptr i8, ptr %v57, i64 8
  %v70 = load float, ptr %v69, align 4
  %v71 = insertelement <8 x float> poison, float %v70, i64 0
  %v72 = shufflevector <8 x float> %v71, <8 x float> poison, <8 x i32> zeroinitializer
  %v73 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v55, <8 x float> %v72, <8 x float> %v68)
  call void asm sideeffect "", "x,x"(<8 x float> %v72, <8 x float> %v73)
  store <8 x float> %v73, ptr %v36, align 32
  %v74 = load <8 x float>, ptr %v37, align 32
  %v75 = getelementptr i8, ptr %v57, i64 12
  %v76 = load float, ptr %v75, align 4
  %v77 = insertelement <8 x float> poison, float %v76, i64 0
  %v78 = shufflevector <8 x float> %v77, <8 x float> poison, <8 x i32> zeroinitializer
  %v79 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v55, <8 x float> %v78, <8 x float> %v74)
  call void asm sideeffect "", "x,x"(<8 x float> %v78, <8 x float> %v79)
  store <8 x float> %v79, ptr %v37, align 32
  %v80 = load <8 x float>, ptr %v38, align 32
  %v81 = getelementptr i8, ptr %v57, i64 16
  %v82 = load float, ptr %v81, align 4
  %v83 = insertelement <8 x float> poison, float %v82, i64 0
  %v84 = shufflevector <8 x float> %v83, <8 x float> poison, <8 x i32> zeroinitializer
  %v85 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v55, <8 x float> %v84, <8 x float> %v80)
  call void asm sideeffect "", "x,x"(<8 x float> %v84, <8 x float> %v85)
  store <8 x float> %v85, ptr %v38, align 32
  %v86 = load <8 x float>, ptr %v39, align 32
  %v87 = getelementptr i8, ptr %v57, i64 20
  %v88 = load float, ptr %v87, align 4
  %v89 = insertelement <8 x float> poison, float %v88, i64 0
  %v90 = shufflevector <8 x float> %v89, <8 x float> poison, <8 x i32> zeroinitializer
  %v91 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v55, <8 x float> %v90, <8 x float> %v86)
  call void asm sideeffect "", "x,x"(<8 x float> %v90, <8 x float> %v91)
  store <8 x float> %v91, ptr %v39, align 32
  %v92 = load <8 x float>, ptr %v40, align 32
  %v93 = getelementptr i8, ptr %v57, i64 24
  %v94 = load float, ptr %v93, align 4
  %v95 = insertelement <8 x float> poison, float %v94, i64 0
  %v96 = shufflevector <8 x float> %v95, <8 x float> poison, <8 x i32> zeroinitializer
  %v97 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v55, <8 x float> %v96, <8 x float> %v92)
  call void asm sideeffect "", "x,x"(<8 x float> %v96, <8 x float> %v97)
  store <8 x float> %v97, ptr %v40, align 32
  %v98 = load <8 x float>, ptr %v41, align 32
  %v99 = getelementptr i8, ptr %v57, i64 28
  %v100 = load float, ptr %v99, align 4
  %v101 = insertelement <8 x float> poison, float %v100, i64 0
  %v102 = shufflevector <8 x float> %v101, <8 x float> poison, <8 x i32> zeroinitializer
  %v103 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v55, <8 x float> %v102, <8 x float> %v98)
  call void asm sideeffect "", "x,x"(<8 x float> %v102, <8 x float> %v103)
  store <8 x float> %v103, ptr %v41, align 32
  %v104 = getelementptr i8, ptr %v54, i64 324
  %v105 = load <8 x float>, ptr %v104, align 4
  %v106 = getelementptr i8, ptr %v57, i64 32
  %v107 = load float, ptr %v106, align 4
  %v108 = insertelement <8 x float> poison, float %v107, i64 0
  %v109 = shufflevector <8 x float> %v108, <8 x float> poison, <8 x i32> zeroinitializer
  %v110 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v105, <8 x float> %v109, <8 x float> %v61)
  call void asm sideeffect "", "x,x"(<8 x float> %v109, <8 x float> %v110)
  store <8 x float> %v110, ptr %v34, align 32
  %v111 = getelementptr i8, ptr %v57, i64 36
  %v112 = load float, ptr %v111, align 4
  %v113 = insertelement <8 x float> poison, float %v112, i64 0
  %v114 = shufflevector <8 x float> %v113, <8 x float> poison, <8 x i32> zeroinitializer
  %v115 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v105, <8 x float> %v114, <8 x float> %v67)
  call void asm sideeffect "", "x,x"(<8 x float> %v114, <8 x float> %v115)
  store <8 x float> %v115, ptr %v35, align 32
  %v116 = getelementptr i8, ptr %v57, i64 40
  %v117 = load float, ptr %v116, align 4
  %v118 = insertelement <8 x float> poison, float %v117, i64 0
  %v119 = shufflevector <8 x float> %v118, <8 x float> poison, <8 x i32> zeroinitializer
  %v120 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v105, <8 x float> %v119, <8 x float> %v73)
  call void asm sideeffect "", "x,x"(<8 x float> %v119, <8 x float> %v120)
  store <8 x float> %v120, ptr %v36, align 32
  %v121 = getelementptr i8, ptr %v57, i64 44
  %v122 = load float, ptr %v121, align 4
  %v123 = insertelement <8 x float> poison, float %v122, i64 0
  %v124 = shufflevector <8 x float> %v123, <8 x float> poison, <8 x i32> zeroinitializer
  %v125 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v105, <8 x float> %v124, <8 x float> %v79)
  call void asm sideeffect "", "x,x"(<8 x float> %v124, <8 x float> %v125)
  store <8 x float> %v125, ptr %v37, align 32
  %v126 = getelementptr i8, ptr %v57, i64 48
  %v127 = load float, ptr %v126, align 4
  %v128 = insertelement <8 x float> poison, float %v127, i64 0
  %v129 = shufflevector <8 x float> %v128, <8 x float> poison, <8 x i32> zeroinitializer
  %v130 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v105, <8 x float> %v129, <8 x float> %v85)
  call void asm sideeffect "", "x,x"(<8 x float> %v129, <8 x float> %v130)
  store <8 x float> %v130, ptr %v38, align 32
  %v131 = getelementptr i8, ptr %v57, i64 52
  %v132 = load float, ptr %v131, align 4
  %v133 = insertelement <8 x float> poison, float %v132, i64 0
  %v134 = shufflevector <8 x float> %v133, <8 x float> poison, <8 x i32> zeroinitializer
  %v135 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v105, <8 x float> %v134, <8 x float> %v91)
  call void asm sideeffect "", "x,x"(<8 x float> %v134, <8 x float> %v135)
  store <8 x float> %v135, ptr %v39, align 32
  %v136 = getelementptr i8, ptr %v57, i64 56
  %v137 = load float, ptr %v136, align 4
  %v138 = insertelement <8 x float> poison, float %v137, i64 0
  %v139 = shufflevector <8 x float> %v138, <8 x float> poison, <8 x i32> zeroinitializer
  %v140 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v105, <8 x float> %v139, <8 x float> %v97)
  call void asm sideeffect "", "x,x"(<8 x float> %v139, <8 x float> %v140)
  store <8 x float> %v140, ptr %v40, align 32
  %v141 = getelementptr i8, ptr %v57, i64 60
  %v142 = load float, ptr %v141, align 4
  %v143 = insertelement <8 x float> poison, float %v142, i64 0
  %v144 = shufflevector <8 x float> %v143, <8 x float> poison, <8 x i32> zeroinitializer
  %v145 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v105, <8 x float> %v144, <8 x float> %v103)
  call void asm sideeffect "", "x,x"(<8 x float> %v144, <8 x float> %v145)
  store <8 x float> %v145, ptr %v41, align 32
  %v146 = getelementptr i8, ptr %v54, i64 648
  %v147 = call <8 x float> @llvm.masked.load.v8f32.p0(ptr %v146, i32 4, <8 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 false>, <8 x float> zeroinitializer)
  %v148 = getelementptr i8, ptr %v57, i64 64
  %v149 = load float, ptr %v148, align 4
  %v150 = insertelement <8 x float> poison, float %v149, i64 0
  %v151 = shufflevector <8 x float> %v150, <8 x float> poison, <8 x i32> zeroinitializer
  %v152 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v147, <8 x float> %v151, <8 x float> %v110)
  call void asm sideeffect "", "x,x"(<8 x float> %v151, <8 x float> %v152)
  store <8 x float> %v152, ptr %v34, align 32
  %v153 = getelementptr i8, ptr %v57, i64 68
  %v154 = load float, ptr %v153, align 4
  %v155 = insertelement <8 x float> poison, float %v154, i64 0
  %v156 = shufflevector <8 x float> %v155, <8 x float> poison, <8 x i32> zeroinitializer
  %v157 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v147, <8 x float> %v156, <8 x float> %v115)
  call void asm sideeffect "", "x,x"(<8 x float> %v156, <8 x float> %v157)
  store <8 x float> %v157, ptr %v35, align 32
  %v158 = getelementptr i8, ptr %v57, i64 72
  %v159 = load float, ptr %v158, align 4
  %v160 = insertelement <8 x float> poison, float %v159, i64 0
  %v161 = shufflevector <8 x float> %v160, <8 x float> poison, <8 x i32> zeroinitializer
  %v162 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v147, <8 x float> %v161, <8 x float> %v120)
  call void asm sideeffect "", "x,x"(<8 x float> %v161, <8 x float> %v162)
  store <8 x float> %v162, ptr %v36, align 32
  %v163 = getelementptr i8, ptr %v57, i64 76
  %v164 = load float, ptr %v163, align 4
  %v165 = insertelement <8 x float> poison, float %v164, i64 0
  %v166 = shufflevector <8 x float> %v165, <8 x float> poison, <8 x i32> zeroinitializer
  %v167 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v147, <8 x float> %v166, <8 x float> %v125)
  call void asm sideeffect "", "x,x"(<8 x float> %v166, <8 x float> %v167)
  store <8 x float> %v167, ptr %v37, align 32
  %v168 = getelementptr i8, ptr %v57, i64 80
  %v169 = load float, ptr %v168, align 4
  %v170 = insertelement <8 x float> poison, float %v169, i64 0
  %v171 = shufflevector <8 x float> %v170, <8 x float> poison, <8 x i32> zeroinitializer
  %v172 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v147, <8 x float> %v171, <8 x float> %v130)
  call void asm sideeffect "", "x,x"(<8 x float> %v171, <8 x float> %v172)
  store <8 x float> %v172, ptr %v38, align 32
  %v173 = getelementptr i8, ptr %v57, i64 84
  %v174 = load float, ptr %v173, align 4
  %v175 = insertelement <8 x float> poison, float %v174, i64 0
  %v176 = shufflevector <8 x float> %v175, <8 x float> poison, <8 x i32> zeroinitializer
  %v177 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v147, <8 x float> %v176, <8 x float> %v135)
  call void asm sideeffect "", "x,x"(<8 x float> %v176, <8 x float> %v177)
  store <8 x float> %v177, ptr %v39, align 32
  %v178 = getelementptr i8, ptr %v57, i64 88
  %v179 = load float, ptr %v178, align 4
  %v180 = insertelement <8 x float> poison, float %v179, i64 0
  %v181 = shufflevector <8 x float> %v180, <8 x float> poison, <8 x i32> zeroinitializer
  %v182 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v147, <8 x float> %v181, <8 x float> %v140)
  call void asm sideeffect "", "x,x"(<8 x float> %v181, <8 x float> %v182)
  store <8 x float> %v182, ptr %v40, align 32
  %v183 = getelementptr i8, ptr %v57, i64 92
  %v184 = load float, ptr %v183, align 4
  %v185 = insertelement <8 x float> poison, float %v184, i64 0
  %v186 = shufflevector <8 x float> %v185, <8 x float> poison, <8 x i32> zeroinitializer
  %v187 = call <8 x float> @llvm.fma.v8f32(<8 x float> %v147, <8 x float> %v186, <8 x float> %v145)
  call void asm sideeffect "", "x,x"(<8 x float> %v186, <8 x float> %v187)
  store <8 x float> %v187, ptr %v41, align 32
  %v190 = getelementptr i8, ptr %v49, i64 96
  %v192 = getelementptr i8, ptr %v54, i64 4
  %v193 = getelementptr i8, ptr %v57, i64 96
  %v188 = icmp ne ptr %v190, %v191
  br i1 %v188, label %b44, label %b189, !llvm.loop !0
b189:
  %v196 = getelementptr i8, ptr %v48, i64 288
  %v198 = getelementptr i8, ptr %v53, i64 36
  %v199 = getelementptr i8, ptr %v56, i64 288
  %v194 = icmp ne ptr %v196, %v197
  br i1 %v194, label %b42, label %b195, !llvm.loop !0
b195:
  %v200 = load <8 x float>, ptr %v34, align 32
  %v201 = fcmp ogt <8 x float> splat (float 0x0000000000000000), %v200
  %v202 = select <8 x i1> %v201, <8 x float> splat (float 0x0000000000000000), <8 x float> %v200
  %v205 = shufflevector <8 x float> %v202, <8 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  store <4 x float> %v205, ptr %v204, align 4
  %v206 = shufflevector <8 x float> %v202, <8 x float> poison, <2 x i32> <i32 4, i32 5>
  %v207 = getelementptr i8, ptr %v204, i64 16
  store <2 x float> %v206, ptr %v207, align 4
  %v208 = extractelement <8 x float> %v202, i64 6
  %v209 = getelementptr i8, ptr %v204, i64 24
  store float %v208, ptr %v209, align 4
  %v210 = load <8 x float>, ptr %v35, align 32
  %v211 = fcmp ogt <8 x float> splat (float 0x0000000000000000), %v210
  %v212 = select <8 x i1> %v211, <8 x float> splat (float 0x0000000000000000), <8 x float> %v210
  %v213 = getelementptr i8, ptr %v204, i64 196
  %v214 = shufflevector <8 x float> %v212, <8 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  store <4 x float> %v214, ptr %v213, align 4
  %v215 = shufflevector <8 x float> %v212, <8 x float> poison, <2 x i32> <i32 4, i32 5>
  %v216 = getelementptr i8, ptr %v204, i64 212
  store <2 x float> %v215, ptr %v216, align 4
  %v217 = extractelement <8 x float> %v212, i64 6
  %v218 = getelementptr i8, ptr %v204, i64 220
  store float %v217, ptr %v218, align 4
  %v219 = load <8 x float>, ptr %v36, align 32
  %v220 = fcmp ogt <8 x float> splat (float 0x0000000000000000), %v219
  %v221 = select <8 x i1> %v220, <8 x float> splat (float 0x0000000000000000), <8 x float> %v219
  %v222 = getelementptr i8, ptr %v204, i64 392
  %v223 = shufflevector <8 x float> %v221, <8 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  store <4 x float> %v223, ptr %v222, align 4
  %v224 = shufflevector <8 x float> %v221, <8 x float> poison, <2 x i32> <i32 4, i32 5>
  %v225 = getelementptr i8, ptr %v204, i64 408
  store <2 x float> %v224, ptr %v225, align 4
  %v226 = extractelement <8 x float> %v221, i64 6
  %v227 = getelementptr i8, ptr %v204, i64 416
  store float %v226, ptr %v227, align 4
  %v228 = load <8 x float>, ptr %v37, align 32
  %v229 = fcmp ogt <8 x float> splat (float 0x0000000000000000), %v228
  %v230 = select <8 x i1> %v229, <8 x float> splat (float 0x0000000000000000), <8 x float> %v228
  %v231 = getelementptr i8, ptr %v204, i64 588
  %v232 = shufflevector <8 x float> %v230, <8 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  store <4 x float> %v232, ptr %v231, align 4
  %v233 = shufflevector <8 x float> %v230, <8 x float> poison, <2 x i32> <i32 4, i32 5>
  %v234 = getelementptr i8, ptr %v204, i64 604
  store <2 x float> %v233, ptr %v234, align 4
  %v235 = extractelement <8 x float> %v230, i64 6
  %v236 = getelementptr i8, ptr %v204, i64 612
  store float %v235, ptr %v236, align 4
  %v237 = load <8 x float>, ptr %v38, align 32
  %v238 = fcmp ogt <8 x float> splat (float 0x0000000000000000), %v237
  %v239 = select <8 x i1> %v238, <8 x float> splat (float 0x0000000000000000), <8 x float> %v237
  %v240 = getelementptr i8, ptr %v204, i64 784
  %v241 = shufflevector <8 x float> %v239, <8 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  store <4 x float> %v241, ptr %v240, align 4
  %v242 = shufflevector <8 x float> %v239, <8 x float> poison, <2 x i32> <i32 4, i32 5>
  %v243 = getelementptr i8, ptr %v204, i64 800
  store <2 x float> %v242, ptr %v243, align 4
  %v244 = extractelement <8 x float> %v239, i64 6
  %v245 = getelementptr i8, ptr %v204, i64 808
  store float %v244, ptr %v245, align 4
  %v246 = load <8 x float>, ptr %v39, align 32
  %v247 = fcmp ogt <8 x float> splat (float 0x0000000000000000), %v246
  %v248 = select <8 x i1> %v247, <8 x float> splat (float 0x0000000000000000), <8 x float> %v246
  %v249 = getelementptr i8, ptr %v204, i64 980
  %v250 = shufflevector <8 x float> %v248, <8 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  store <4 x float> %v250, ptr %v249, align 4
  %v251 = shufflevector <8 x float> %v248, <8 x float> poison, <2 x i32> <i32 4, i32 5>
  %v252 = getelementptr i8, ptr %v204, i64 996
  store <2 x float> %v251, ptr %v252, align 4
  %v253 = extractelement <8 x float> %v248, i64 6
  %v254 = getelementptr i8, ptr %v204, i64 1004
  store float %v253, ptr %v254, align 4
  %v255 = load <8 x float>, ptr %v40, align 32
  %v256 = fcmp ogt <8 x float> splat (float 0x0000000000000000), %v255
  %v257 = select <8 x i1> %v256, <8 x float> splat (float 0x0000000000000000), <8 x float> %v255
  %v258 = getelementptr i8, ptr %v204, i64 1176
  %v259 = shufflevector <8 x float> %v257, <8 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  store <4 x float> %v259, ptr %v258, align 4
  %v260 = shufflevector <8 x float> %v257, <8 x float> poison, <2 x i32> <i32 4, i32 5>
  %v261 = getelementptr i8, ptr %v204, i64 1192
  store <2 x float> %v260, ptr %v261, align 4
  %v262 = extractelement <8 x float> %v257, i64 6
  %v263 = getelementptr i8, ptr %v204, i64 1200
  store float %v262, ptr %v263, align 4
  %v264 = load <8 x float>, ptr %v41, align 32
  %v265 = fcmp ogt <8 x float> splat (float 0x0000000000000000), %v264
  %v266 = select <8 x i1> %v265, <8 x float> splat (float 0x0000000000000000), <8 x float> %v264
  %v267 = getelementptr i8, ptr %v204, i64 1372
  %v268 = shufflevector <8 x float> %v266, <8 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  store <4 x float> %v268, ptr %v267, align 4
  %v269 = shufflevector <8 x float> %v266, <8 x float> poison, <2 x i32> <i32 4, i32 5>
  %v270 = getelementptr i8, ptr %v204, i64 1388
  store <2 x float> %v269, ptr %v270, align 4
  %v271 = extractelement <8 x float> %v266, i64 6
  %v272 = getelementptr i8, ptr %v204, i64 1396
  store float %v271, ptr %v272, align 4
  %v275 = getelementptr i8, ptr %v47, i64 64
  %v277 = getelementptr i8, ptr %v52, i64 36
  %v278 = getelementptr i8, ptr %v204, i64 28
  %v273 = icmp ne ptr %v275, %v276
  br i1 %v273, label %b32, label %b274, !llvm.loop !0
b274:
  %v281 = getelementptr i8, ptr %v46, i64 864
  %v283 = getelementptr i8, ptr %v203, i64 1568
  %v279 = icmp ne ptr %v281, %v282
  br i1 %v279, label %b1, label %b280, !llvm.loop !0
b280:
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
