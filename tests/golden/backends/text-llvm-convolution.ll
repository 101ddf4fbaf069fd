declare <8 x float> @llvm.masked.load.v8f32.p0(ptr, i32 immarg, <8 x i1>, <8 x float>)
declare void @llvm.prefetch.p0(ptr, i32, i32, i32)
declare <4 x float> @llvm.fma.v4f32(<4 x float>, <4 x float>, <4 x float>)
declare <2 x float> @llvm.fma.v2f32(<2 x float>, <2 x float>, <2 x float>)
declare float @llvm.fma.f32(float, float, float)
declare void @GOMP_parallel(ptr, ptr, i32, i32)
declare i32 @omp_get_thread_num()
declare i32 @omp_get_num_threads()
define internal void @convolution.par0.body(ptr noalias align 64 %p2, ptr noalias align 64 %p1, ptr noalias align 64 %p0, ptr %workspace, ptr %slice, i64 %first, i64 %stop) nounwind {
entry:
  %v3 = alloca [972 x i8], align 64
  %v34 = alloca [224 x i8], align 64
  %v10 = add <8 x i32> splat (i32 1), <i32 0, i32 -1, i32 -2, i32 -3, i32 -4, i32 -5, i32 -6, i32 -7>
  %v11 = icmp sle <8 x i32> %v10, zeroinitializer
  %v35 = getelementptr i8, ptr %v34, i64 16
  %v36 = getelementptr i8, ptr %v34, i64 24
  %v37 = getelementptr i8, ptr %v34, i64 28
  %v38 = getelementptr i8, ptr %v34, i64 44
  %v39 = getelementptr i8, ptr %v34, i64 52
  %v40 = getelementptr i8, ptr %v34, i64 56
  %v41 = getelementptr i8, ptr %v34, i64 72
  %v42 = getelementptr i8, ptr %v34, i64 80
  %v43 = getelementptr i8, ptr %v34, i64 84
  %v44 = getelementptr i8, ptr %v34, i64 100
  %v45 = getelementptr i8, ptr %v34, i64 108
  %v46 = getelementptr i8, ptr %v34, i64 112
  %v47 = getelementptr i8, ptr %v34, i64 128
  %v48 = getelementptr i8, ptr %v34, i64 136
  %v49 = getelementptr i8, ptr %v34, i64 140
  %v50 = getelementptr i8, ptr %v34, i64 156
  %v51 = getelementptr i8, ptr %v34, i64 164
  %v52 = getelementptr i8, ptr %v34, i64 168
  %v53 = getelementptr i8, ptr %v34, i64 184
  %v54 = getelementptr i8, ptr %v34, i64 192
  %v55 = getelementptr i8, ptr %v34, i64 196
  %v56 = getelementptr i8, ptr %v34, i64 212
  %v57 = getelementptr i8, ptr %v34, i64 220
  %v62 = mul nsw i64 %first, 864
  %v63 = getelementptr i8, ptr %p1, i64 %v62
  %v393 = mul nsw i64 %first, 1568
  %v394 = getelementptr i8, ptr %p2, i64 %v393
  br label %b1
b1:
  %v64 = phi ptr [ %v63, %entry ], [ %v497, %b490 ]
  %v395 = phi ptr [ %v394, %entry ], [ %v498, %b490 ]
  %v2 = phi i64 [ %first, %entry ], [ %v499, %b490 ]
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
  %v492 = getelementptr i8, ptr %v64, i64 224
  br label %b32
b32:
  %v65 = phi ptr [ %v64, %b28 ], [ %v491, %b385 ]
  %v70 = phi ptr [ %v3, %b28 ], [ %v493, %b385 ]
  %v396 = phi ptr [ %v395, %b28 ], [ %v494, %b385 ]
  store <4 x float> splat (float 0x0000000000000000), ptr %v34, align 16
  store <2 x float> splat (float 0x0000000000000000), ptr %v35, align 8
  store float 0x0000000000000000, ptr %v36, align 4
  store <4 x float> splat (float 0x0000000000000000), ptr %v37, align 4
  store <2 x float> splat (float 0x0000000000000000), ptr %v38, align 4
  store float 0x0000000000000000, ptr %v39, align 4
  store <4 x float> splat (float 0x0000000000000000), ptr %v40, align 8
  store <2 x float> splat (float 0x0000000000000000), ptr %v41, align 8
  store float 0x0000000000000000, ptr %v42, align 4
  store <4 x float> splat (float 0x0000000000000000), ptr %v43, align 4
  store <2 x float> splat (float 0x0000000000000000), ptr %v44, align 4
  store float 0x0000000000000000, ptr %v45, align 4
  store <4 x float> splat (float 0x0000000000000000), ptr %v46, align 16
  store <2 x float> splat (float 0x0000000000000000), ptr %v47, align 8
  store float 0x0000000000000000, ptr %v48, align 4
  store <4 x float> splat (float 0x0000000000000000), ptr %v49, align 4
  store <2 x float> splat (float 0x0000000000000000), ptr %v50, align 4
  store float 0x0000000000000000, ptr %v51, align 4
  store <4 x float> splat (float 0x0000000000000000), ptr %v52, align 8
  store <2 x float> splat (float 0x0000000000000000), ptr %v53, align 8
  store float 0x0000000000000000, ptr %v54, align 4
  store <4 x float> splat (float 0x0000000000000000), ptr %v55, align 4
  store <2 x float> splat (float 0x0000000000000000), ptr %v56, align 4
  store float 0x0000000000000000, ptr %v57, align 4
  %v387 = getelementptr i8, ptr %v65, i64 864
  br label %b58
b58:
  %v66 = phi ptr [ %v65, %b32 ], [ %v386, %b379 ]
  %v71 = phi ptr [ %v70, %b32 ], [ %v388, %b379 ]
  %v74 = phi ptr [ %v64, %b32 ], [ %v389, %b379 ]
  %v381 = getelementptr i8, ptr %v66, i64 288
  br label %b60
b60:
  %v67 = phi ptr [ %v66, %b58 ], [ %v380, %b60 ]
  %v72 = phi ptr [ %v71, %b58 ], [ %v382, %b60 ]
  %v75 = phi ptr [ %v74, %b58 ], [ %v383, %b60 ]
  %v68 = getelementptr i8, ptr %v67, i64 864
  call void @llvm.prefetch.p0(ptr %v68, i32 0, i32 2, i32 1)
  %v69 = load <4 x float>, ptr %v34, align 16
  %v73 = load <4 x float>, ptr %v72, align 4
  %v76 = load float, ptr %v75, align 4
  %v77 = insertelement <4 x float> poison, float %v76, i64 0
  %v78 = shufflevector <4 x float> %v77, <4 x float> poison, <4 x i32> zeroinitializer
  %v79 = call <4 x float> @llvm.fma.v4f32(<4 x float> %v73, <4 x float> %v78, <4 x float> %v69)
  store <4 x float> %v79, ptr %v34, align 16
  %v80 = load <2 x float>, ptr %v35, align 8
  %v81 = getelementptr i8, ptr %v72, i64 16
  %v82 = load <2 x float>, ptr %v81, align 4
  %v83 = insertelement <2 x float> poison, float %v76, i64 0
  %v84 = shufflevector <2 x float> %v83, <2 x float> poison, <2 x i32> zeroinitializer
  %v85 = call <2 x float> @llvm.fma.v2f32(<2 x float> %v82, <2 x float> %v84, <2 x float> %v80)
  store <2 x float> %v85, ptr %v35, align 8
  %v86 = load float, ptr %v36, align 4
  %v87 = getelementptr i8, ptr %v72, i64 24
  %v88 = load float, ptr %v87, align 4
  %v89 = call float @llvm.fma.f32(float %v88, float %v76, float %v86)
  store float %v89, ptr %v36, align 4
  %v90 = load <4 x float>, ptr %v37, align 4
  %v91 = getelementptr i8, ptr %v75, i64 4
  %v92 = load float, ptr %v91, align 4
  %v93 = insertelement <4 x float> poison, float %v92, i64 0
  %v94 = shufflevector <4 x float> %v93, <4 x float> poison, <4 x i32> zeroinitializer
  %v95 = call <4 x float> @llvm.fma.v4f32(<4 x float> %v73, <4 x float> %v94, <4 x float> %v90)
  store <4 x float> %v95, ptr %v37, align 4
  %v96 = load <2 x float>, ptr %v38, align 4
  %v97 = insertelement <2 x float> poison, float %v92, i64 0
  %v98 = shufflevector <2 x float> %v97, <2 x float> poison, <2 x i32> zeroinitializer
  %v99 = call <2 x float> @llvm.fma.v2f32(<2 x float> %v82, <2 x float> %v98, <2 x float> %v96)
  store <2 x float> %v99, ptr %v38, align 4
  %v100 = load float, ptr %v39, align 4
  %v101 = call float @llvm.fma.f32(float %v88, float %v92, float %v100)
  store float %v101, ptr %v39, align 4
  %v102 = load <4 x float>, ptr %v40, align 8
  %v103 = getelementptr i8, ptr %v75, i64 8
  %v104 = load float, ptr %v103, align 4
  %v105 = insertelement <4 x float> poison, float %v104, i64 0
  %v106 = shufflevector <4 x float> %v105, <4 x float> poison, <4 x i32> zeroinitializer
  %v107 = call <4 x float> @llvm.fma.v4f32(<4 x float> %v73, <4 x float> %v106, <4 x float> %v102)
  store <4 x float> %v107, ptr %v40, align 8
  %v108 = load <2 x float>, ptr %v41, align 8
  %v109 = insertelement <2 x float> poison, float %v104, i64 0
  %v110 = shufflevector <2 x float> %v109, <2 x float> poison, <2 x i32> zeroinitializer
  %v111 = call <2 x float> @llvm.fma.v2f32(<2 x float> %v82, <2 x float> %v110, <2 x float> %v108)
  store <2 x float> %v111, ptr %v41, align 8
  %v112 = load float, ptr %v42, align 4
  %v113 = call float @llvm.fma.f32(float %v88, float %v104, float %v112)
  store float %v113, ptr %v42, align 4
  %v114 = load <4 x float>, ptr %v43, align 4
  %v115 = getelementptr i8, ptr %v75, i64 12
  %v116 = load float, ptr %v115, align 4
  %v117 = insertelement <4 x float> poison, float %v116, i64 0
  %v118 = shufflevector <4 x float> %v117, <4 x float> poison, <4 x i32> zeroinitializer
  %v119 = call <4 x float> @llvm.fma.v4f32(<4 x float> %v73, <4 x float> %v118, <4 x float> %v114)
  store <4 x float> %v119, ptr %v43, align 4
  %v120 = load <2 x float>, ptr %v44, align 4
  %v121 = insertelement <2 x float> poison, float %v116, i64 0
  %v122 = shufflevector <2 x float> %v121, <2 x float> poison, <2 x i32> zeroinitializer
  %v123 = call <2 x float> @llvm.fma.v2f32(<2 x float> %v82, <2 x float> %v122, <2 x float> %v120)
  store <2 x float> %v123, ptr %v44, align 4
  %v124 = load float, ptr %v45, align 4
  %v125 = call float @llvm.fma.f32(float %v88, float %v116, float %v124)
  store float %v125, ptr %v45, align 4
  %v126 = load <4 x float>, ptr %v46, align 16
  %v127 = getelementptr i8, ptr %v75, i64 16
  %v128 = load float, ptr %v127, align 4
  %v129 = insertelement <4 x float> poison, float %v128, i64 0
  %v130 = shufflevector <4 x float> %v129, <4 x float> poison, <4 x i32> zeroinitializer
  %v131 = call <4 x float> @llvm.fma.v4f32(<4 x float> %v73, <4 x float> %v130, <4 x float> %v126)
  store <4 x float> %v131, ptr %v46, align 16
  %v132 = load <2 x float>, ptr %v47, align 8
  %v133 = insertelement <2 x float> poison, float %v128, i64 0
  %v134 = shufflevector <2 x float> %v133, <2 x float> poison, <2 x i32> zeroinitializer
  %v135 = call <2 x float> @llvm.fma.v2f32(<2 x float> %v82, <2 x float> %v134, <2 x float> %v132)
  store <2 x float> %v135, ptr %v47, align 8
  %v136 = load float, ptr %v48, align 4
  %v137 = call float @llvm.fma.f32(float %v88, float %v128, float %v136)
  store float %v137, ptr %v48, align 4
  %v138 = load <4 x float>, ptr %v49, align 4
  %v139 = getelementptr i8, ptr %v75, i64 20
  %v140 = load float, ptr %v139, align 4
  %v141 = insertelement <4 x float> poison, float %v140, i64 0
  %v142 = shufflevector <4 x float> %v141, <4 x float> poison, <4 x i32> zeroinitializer
  %v143 = call <4 x float> @llvm.fma.v4f32(<4 x float> %v73, <4 x float> %v142, <4 x float> %v138)
  store <4 x float> %v143, ptr %v49, align 4
  %v144 = load <2 x float>, ptr %v50, align 4
  %v145 = insertelement <2 x float> poison, float %v140, i64 0
  %v146 = shufflevector <2 x float> %v145, <2 x float> poison, <2 x i32> zeroinitializer
  %v147 = call <2 x float> @llvm.fma.v2f32(<2 x float> %v82, <2 x float> %v146, <2 x float> %v144)
  store <2 x float> %v147, ptr %v50, align 4
  %v148 = load float, ptr %v51, align 4
  %v149 = call float @llvm.fma.f32(float %v88, float %v140, float %v148)
  store float %v149, ptr %v51, align 4
  %v150 = load <4 x float>, ptr %v52, align 8
  %v151 = getelementptr i8, ptr %v75, i64 24
  %v152 = load float, ptr %v151, align 4
  %v153 = insertelement <4 x float> poison, float %v152, i64 0
  %v154 = shufflevector <4 x float> %v153, <4 x float> poison, <4 x i32> zeroinitializer
  %v155 = call <4 x float> @llvm.fma.v4f32(<4 x float> %v73, <4 x float> %v154, <4 x float> %v150)
  store <4 x float> %v155, ptr %v52, align 8
  %v156 = load <2 x float>, ptr %v53, align 8
  %v157 = insertelement <2 x float> poison, float %v152, i64 0
  %v158 = shufflevector <2 x float> %v157, <2 x float> poison, <2 x i32> zeroinitializer
  %v159 = call <2 x float> @llvm.fma.v2f32(<2 x float> %v82, <2 x float> %v158, <2 x float> %v156)
  store <2 x float> %v159, ptr %v53, align 8
  %v160 = load float, ptr %v54, align 4
  %v161 = call float @llvm.fma.f32(float %v88, float %v152, float %v160)
  store float %v161, ptr %v54, align 4
  %v162 = load <4 x float>, ptr %v55, align 4
  %v163 = getelementptr i8, ptr %v75, i64 28
  %v164 = load float, ptr %v163, align 4
  %v165 = insertelement <4 x float> poison, float %v164, i64 0
  %v166 = shufflevector <4 x float> %v165, <4 x float> poison, <4 x i32> zeroinitializer
  %v167 = call <4 x float> @llvm.fma.v4f32(<4 x float> %v73, <4 x float> %v166, <4 x float> %v162)
  store <4 x float> %v167, ptr %v55, align 4
  %v168 = load <2 x float>, ptr %v56, align 4
  %v169 = insertelement <2 x float> poison, float %v164, i64 0
  %v170 = shufflevector <2 x float> %v169, <2 x float> poison, <2 x i32> zeroinitializer
  %v171 = call <2 x float> @llvm.fma.v2f32(<2 x float> %v82, <2 x float> %v170, <2 x float> %v168)
  store <2 x float> %v171, ptr %v56, align 4
  %v172 = load float, ptr %v57, align 4
  %v173 = call float @llvm.fma.f32(float %v88, float %v164, float %v172)
  store float %v173, ptr %v57, align 4
  %v174 = load <4 x float>, ptr %v34, align 16
  %v175 = getelementptr i8, ptr %v72, i64 324
  %v176 = load <4 x float>, ptr %v175, align 4
  %v177 = getelementptr i8, ptr %v75, i64 32
  %v178 = load float, ptr %v177, align 4
  %v179 = insertelement <4 x float> poison, float %v178, i64 0
  %v180 = shufflevector <4 x float> %v179, <4 x float> poison, <4 x i32> zeroinitializer
  %v181 = call <4 x float> @llvm.fma.v4f32(<4 x float> %v176, <4 x float> %v180, <4 x float> %v174)
  store <4 x float> %v181, ptr %v34, align 16
  %v182 = load <2 x float>, ptr %v35, align 8
  %v183 = getelementptr i8, ptr %v72, i64 340
  %v184 = load <2 x float>, ptr %v183, align 4
  %v185 = insertelement <2 x float> poison, float %v178, i64 0
  %v186 = shufflevector <2 x float> %v185, <2 x float> poison, <2 x i32> zeroinitializer
  %v187 = call <2 x float> @llvm.fma.v2f32(<2 x float> %v184, <2 x float> %v186, <2 x float> %v182)
  store <2 x float> %v187, ptr %v35, align 8
  %v188 = load float, ptr %v36, align 4
  %v189 = getelementptr i8, ptr %v72, i64 348
  %v190 = load float, ptr %v189, align 4
  %v191 = call float @llvm.fma.f32(float %v190, float %v178, float %v188)
  store float %v191, ptr %v36, align 4
  %v192 = load <4 x float>, ptr %v37, align 4
  %v193 = getelementptr i8, ptr %v75, i64 36
  %v194 = load float, ptr %v193, align 4
  %v195 = insertelement <4 x float> poison, float %v194, i64 0
  %v196 = shufflevector <4 x float> %v195, <4 x float> poison, <4 x i32> zeroinitializer
  %v197 = call <4 x float> @llvm.fma.v4f32(<4 x float> %v176, <4 x float> %v196, <4 x float> %v192)
  store <4 x float> %v197, ptr %v37, align 4
  %v198 = load <2 x float>, ptr %v38, align 4
  %v199 = insertelement <2 x float> poison, float %v194, i64 0
  %v200 = shufflevector <2 x float> %v199, <2 x float> poison, <2 x i32> zeroinitializer
  %v201 = call <2 x float> @llvm.fma.v2f32(<2 x float> %v184, <2 x float> %v200, <2 x float> %v198)
  store <2 x float> %v201, ptr %v38, align 4
  %v202 = load float, ptr %v39, align 4
  %v203 = call float @llvm.fma.f32(float %v190, float %v194, float %v202)
  store float %v203, ptr %v39, align 4
  %v204 = load <4 x float>, ptr %v40, align 8
  %v205 = getelementptr i8, ptr %v75, i64 40
  %v206 = load float, ptr %v205, align 4
  %v207 = insertelement <4 x float> poison, float %v206, i64 0
  %v208 = shufflevector <4 x float> %v207, <4 x float> poison, <4 x i32> zeroinitializer
  %v209 = call <4 x float> @llvm.fma.v4f32(<4 x float> %v176, <4 x float> %v208, <4 x float> %v204)
  store <4 x float> %v209, ptr %v40, align 8
  %v210 = load <2 x float>, ptr %v41, align 8
  %v211 = insertelement <2 x float> poison, float %v206, i64 0
  %v212 = shufflevector <2 x float> %v211, <2 x float> poison, <2 x i32> zeroinitializer
  %v213 = call <2 x float> @llvm.fma.v2f32(<2 x float> %v184, <2 x float> %v212, <2 x float> %v210)
  store <2 x float> %v213, ptr %v41, align 8
  %v214 = load float, ptr %v42, align 4
  %v215 = call float @llvm.fma.f32(float %v190, float %v206, float %v214)
  store float %v215, ptr %v42, align 4
  %v216 = load <4 x float>, ptr %v43, align 4
  %v217 = getelementptr i8, ptr %v75, i64 44
  %v218 = load float, ptr %v217, align 4
  %v219 = insertelement <4 x float> poison, float %v218, i64 0
  %v220 = shufflevector <4 x float> %v219, <4 x float> poison, <4 x i32> zeroinitializer
  %v221 = call <4 x float> @llvm.fma.v4f32(<4 x float> %v176, <4 x float> %v220, <4 x float> %v216)
  store <4 x float> %v221, ptr %v43, align 4
  %v222 = load <2 x float>, ptr %v44, align 4
  %v223 = insertelement <2 x float> poison, float %v218, i64 0
  %v224 = shufflevector <2 x float> %v223, <2 x float> poison, <2 x i32> zeroinitializer
  %v225 = call <2 x float> @llvm.fma.v2f32(<2 x float> %v184, <2 x float> %v224, <2 x float> %v222)
  store <2 x float> %v225, ptr %v44, align 4
  %v226 = load float, ptr %v45, align 4
  %v227 = call float @llvm.fma.f32(float %v190, float %v218, float %v226)
  store float %v227, ptr %v45, align 4
  %v228 = load <4 x float>, ptr %v46, align 16
  %v229 = getelementptr i8, ptr %v75, i64 48
  %v230 = load float, ptr %v229, align 4
  %v231 = insertelement <4 x float> poison, float %v230, i64 0
  %v232 = shufflevector <4 x float> %v231, <4 x float> poison, <4 x i32> zeroinitializer
  %v233 = call <4 x float> @llvm.fma.v4f32(<4 x float> %v176, <4 x float> %v232, <4 x float> %v228)
  store <4 x float> %v233, ptr %v46, align 16
  %v234 = load <2 x float>, ptr %v47, align 8
  %v235 = insertelement <2 x float> poison, float %v230, i64 0
  %v236 = shufflevector <2 x float> %v235, <2 x float> poison, <2 x i32> zeroinitializer
  %v237 = call <2 x float> @llvm.fma.v2f32(<2 x float> %v184, <2 x float> %v236, <2 x float> %v234)
  store <2 x float> %v237, ptr %v47, align 8
  %v238 = load float, ptr %v48, align 4
  %v239 = call float @llvm.fma.f32(float %v190, float %v230, float %v238)
  store float %v239, ptr %v48, align 4
  %v240 = load <4 x float>, ptr %v49, align 4
  %v241 = getelementptr i8, ptr %v75, i64 52
  %v242 = load float, ptr %v241, align 4
  %v243 = insertelement <4 x float> poison, float %v242, i64 0
  %v244 = shufflevector <4 x float> %v243, <4 x float> poison, <4 x i32> zeroinitializer
  %v245 = call <4 x float> @llvm.fma.v4f32(<4 x float> %v176, <4 x float> %v244, <4 x float> %v240)
  store <4 x float> %v245, ptr %v49, align 4
  %v246 = load <2 x float>, ptr %v50, align 4
  %v247 = insertelement <2 x float> poison, float %v242, i64 0
  %v248 = shufflevector <2 x float> %v247, <2 x float> poison, <2 x i32> zeroinitializer
  %v249 = call <2 x float> @llvm.fma.v2f32(<2 x float> %v184, <2 x float> %v248, <2 x float> %v246)
  store <2 x float> %v249, ptr %v50, align 4
  %v250 = load float, ptr %v51, align 4
  %v251 = call float @llvm.fma.f32(float %v190, float %v242, float %v250)
  store float %v251, ptr %v51, align 4
  %v252 = load <4 x float>, ptr %v52, align 8
  %v253 = getelementptr i8, ptr %v75, i64 56
  %v254 = load float, ptr %v253, align 4
  %v255 = insertelement <4 x float> poison, float %v254, i64 0
  %v256 = shufflevector <4 x float> %v255, <4 x float> poison, <4 x i32> zeroinitializer
  %v257 = call <4 x float> @llvm.fma.v4f32(<4 x float> %v176, <4 x float> %v256, <4 x float> %v252)
  store <4 x float> %v257, ptr %v52, align 8
  %v258 = load <2 x float>, ptr %v53, align 8
  %v259 = insertelement <2 x float> poison, float %v254, i64 0
  %v260 = shufflevector <2 x float> %v259, <2 x float> poison, <2 x i32> zeroinitializer
  %v261 = call <2 x float> @llvm.fma.v2f32(<2 x float> %v184, <2 x float> %v260, <2 x float> %v258)
  store <2 x float> %v261, ptr %v53, align 8
  %v262 = load float, ptr %v54, align 4
  %v263 = call float @llvm.fma.f32(float %v190, float %v254, float %v262)
  store float %v263, ptr %v54, align 4
  %v264 = load <4 x float>, ptr %v55, align 4
  %v265 = getelementptr i8, ptr %v75, i64 60
  %v266 = load float, ptr %v265, align 4
  %v267 = insertelement <4 x float> poison, float %v266, i64 0
  %v268 = shufflevector <4 x float> %v267, <4 x float> poison, <4 x i32> zeroinitializer
  %v269 = call <4 x float> @llvm.fma.v4f32(<4 x float> %v176, <4 x float> %v268, <4 x float> %v264)
  store <4 x float> %v269, ptr %v55, align 4
  %v270 = load <2 x float>, ptr %v56, align 4
  %v271 = insertelement <2 x float> poison, float %v266, i64 0
  %v272 = shufflevector <2 x float> %v271, <2 x float> poison, <2 x i32> zeroinitializer
  %v273 = call <2 x float> @llvm.fma.v2f32(<2 x float> %v184, <2 x float> %v272, <2 x float> %v270)
  store <2 x float> %v273, ptr %v56, align 4
  %v274 = load float, ptr %v57, align 4
  %v275 = call float @llvm.fma.f32(float %v190, float %v266, float %v274)
  store float %v275, ptr %v57, align 4
  %v276 = load <4 x float>, ptr %v34, align 16
  %v277 = getelementptr i8, ptr %v72, i64 648
  %v278 = load <4 x float>, ptr %v277, align 4
  %v279 = getelementptr i8, ptr %v75, i64 64
  %v280 = load float, ptr %v279, align 4
  %v281 = insertelement <4 x float> poison, float %v280, i64 0
  %v282 = shufflevector <4 x float> %v281, <4 x float> poison, <4 x i32> zeroinitializer
  %v283 = call <4 x float> @llvm.fma.v4f32(<4 x float> %v278, <4 x float> %v282, <4 x float> %v276)
  store <4 x float> %v283, ptr %v34, align 16
  %v284 = load <2 x float>, ptr %v35, align 8
  %v285 = getelementptr i8, ptr %v72, i64 664
  %v286 = load <2 x float>, ptr %v285, align 4
  %v287 = insertelement <2 x float> poison, float %v280, i64 0
  %v288 = shufflevector <2 x float> %v287, <2 x float> poison, <2 x i32> zeroinitializer
  %v289 = call <2 x float> @llvm.fma.v2f32(<2 x float> %v286, <2 x float> %v288, <2 x float> %v284)
  store <2 x float> %v289, ptr %v35, align 8
  %v290 = load float, ptr %v36, align 4
  %v291 = getelementptr i8, ptr %v72, i64 672
  %v292 = load float, ptr %v291, align 4
  %v293 = call float @llvm.fma.f32(float %v292, float %v280, float %v290)
  store float %v293, ptr %v36, align 4
  %v294 = load <4 x float>, ptr %v37, align 4
  %v295 = getelementptr i8, ptr %v75, i64 68
  %v296 = load float, ptr %v295, align 4
  %v297 = insertelement <4 x float> poison, float %v296, i64 0
  %v298 = shufflevector <4 x float> %v297, <4 x float> poison, <4 x i32> zeroinitializer
  %v299 = call <4 x float> @llvm.fma.v4f32(<4 x float> %v278, <4 x float> %v298, <4 x float> %v294)
  store <4 x float> %v299, ptr %v37, align 4
  %v300 = load <2 x float>, ptr %v38, align 4
  %v301 = insertelement <2 x float> poison, float %v296, i64 0
  %v302 = shufflevector <2 x float> %v301, <2 x float> poison, <2 x i32> zeroinitializer
  %v303 = call <2 x float> @llvm.fma.v2f32(<2 x float> %v286, <2 x float> %v302, <2 x float> %v300)
  store <2 x float> %v303, ptr %v38, align 4
  %v304 = load float, ptr %v39, align 4
  %v305 = call float @llvm.fma.f32(float %v292, float %v296, float %v304)
  store float %v305, ptr %v39, align 4
  %v306 = load <4 x float>, ptr %v40, align 8
  %v307 = getelementptr i8, ptr %v75, i64 72
  %v308 = load float, ptr %v307, align 4
  %v309 = insertelement <4 x float> poison, float %v308, i64 0
  %v310 = shufflevector <4 x float> %v309, <4 x float> poison, <4 x i32> zeroinitializer
  %v311 = call <4 x float> @llvm.fma.v4f32(<4 x float> %v278, <4 x float> %v310, <4 x float> %v306)
  store <4 x float> %v311, ptr %v40, align 8
  %v312 = load <2 x float>, ptr %v41, align 8
  %v313 = insertelement <2 x float> poison, float %v308, i64 0
  %v314 = shufflevector <2 x float> %v313, <2 x float> poison, <2 x i32> zeroinitializer
  %v315 = call <2 x float> @llvm.fma.v2f32(<2 x float> %v286, <2 x float> %v314, <2 x float> %v312)
  store <2 x float> %v315, ptr %v41, align 8
  %v316 = load float, ptr %v42, align 4
  %v317 = call float @llvm.fma.f32(float %v292, float %v308, float %v316)
  store float %v317, ptr %v42, align 4
  %v318 = load <4 x float>, ptr %v43, align 4
  %v319 = getelementptr i8, ptr %v75, i64 76
  %v320 = load float, ptr %v319, align 4
  %v321 = insertelement <4 x float> poison, float %v320, i64 0
  %v322 = shufflevector <4 x float> %v321, <4 x float> poison, <4 x i32> zeroinitializer
  %v323 = call <4 x float> @llvm.fma.v4f32(<4 x float> %v278, <4 x float> %v322, <4 x float> %v318)
  store <4 x float> %v323, ptr %v43, align 4
  %v324 = load <2 x float>, ptr %v44, align 4
  %v325 = insertelement <2 x float> poison, float %v320, i64 0
  %v326 = shufflevector <2 x float> %v325, <2 x float> poison, <2 x i32> zeroinitializer
  %v327 = call <2 x float> @llvm.fma.v2f32(<2 x float> %v286, <2 x float> %v326, <2 x float> %v324)
  store <2 x float> %v327, ptr %v44, align 4
  %v328 = load float, ptr %v45, align 4
  %v329 = call float @llvm.fma.f32(float %v292, float %v320, float %v328)
  store float %v329, ptr %v45, align 4
  %v330 = load <4 x float>, ptr %v46, align 16
  %v331 = getelementptr i8, ptr %v75, i64 80
  %v332 = load float, ptr %v331, align 4
  %v333 = insertelement <4 x float> poison, float %v332, i64 0
  %v334 = shufflevector <4 x float> %v333, <4 x float> poison, <4 x i32> zeroinitializer
  %v335 = call <4 x float> @llvm.fma.v4f32(<4 x float> %v278, <4 x float> %v334, <4 x float> %v330)
  store <4 x float> %v335, ptr %v46, align 16
  %v336 = load <2 x float>, ptr %v47, align 8
  %v337 = insertelement <2 x float> poison, float %v332, i64 0
  %v338 = shufflevector <2 x float> %v337, <2 x float> poison, <2 x i32> zeroinitializer
  %v339 = call <2 x float> @llvm.fma.v2f32(<2 x float> %v286, <2 x float> %v338, <2 x float> %v336)
  store <2 x float> %v339, ptr %v47, align 8
  %v340 = load float, ptr %v48, align 4
  %v341 = call float @llvm.fma.f32(float %v292, float %v332, float %v340)
  store float %v341, ptr %v48, align 4
  %v342 = load <4 x float>, ptr %v49, align 4
  %v343 = getelementptr i8, ptr %v75, i64 84
  %v344 = load float, ptr %v343, align 4
  %v345 = insertelement <4 x float> poison, float %v344, i64 0
  %v346 = shufflevector <4 x float> %v345, <4 x float> poison, <4 x i32> zeroinitializer
  %v347 = call <4 x float> @llvm.fma.v4f32(<4 x float> %v278, <4 x float> %v346, <4 x float> %v342)
  store <4 x float> %v347, ptr %v49, align 4
  %v348 = load <2 x float>, ptr %v50, align 4
  %v349 = insertelement <2 x float> poison, float %v344, i64 0
  %v350 = shufflevector <2 x float> %v349, <2 x float> poison, <2 x i32> zeroinitializer
  %v351 = call <2 x float> @llvm.fma.v2f32(<2 x float> %v286, <2 x float> %v350, <2 x float> %v348)
  store <2 x float> %v351, ptr %v50, align 4
  %v352 = load float, ptr %v51, align 4
  %v353 = call float @llvm.fma.f32(float %v292, float %v344, float %v352)
  store float %v353, ptr %v51, align 4
  %v354 = load <4 x float>, ptr %v52, align 8
  %v355 = getelementptr i8, ptr %v75, i64 88
  %v356 = load float, ptr %v355, align 4
  %v357 = insertelement <4 x float> poison, float %v356, i64 0
  %v358 = shufflevector <4 x float> %v357, <4 x float> poison, <4 x i32> zeroinitializer
  %v359 = call <4 x float> @llvm.fma.v4f32(<4 x float> %v278, <4 x float> %v358, <4 x float> %v354)
  store <4 x float> %v359, ptr %v52, align 8
  %v360 = load <2 x float>, ptr %v53, align 8
  %v361 = insertelement <2 x float> poison, float %v356, i64 0
  %v362 = shufflevector <2 x float> %v361, <2 x float> poison, <2 x i32> zeroinitializer
  %v363 = call <2 x float> @llvm.fma.v2f32(<2 x float> %v286, <2 x float> %v362, <2 x float> %v360)
  store <2 x float> %v363, ptr %v53, align 8
  %v364 = load float, ptr %v54, align 4
  %v365 = call float @llvm.fma.f32(float %v292, float %v356, float %v364)
  store float %v365, ptr %v54, align 4
  %v366 = load <4 x float>, ptr %v55, align 4
  %v367 = getelementptr i8, ptr %v75, i64 92
  %v368 = load float, ptr %v367, align 4
  %v369 = insertelement <4 x float> poison, float %v368, i64 0
  %v370 = shufflevector <4 x float> %v369, <4 x float> poison, <4 x i32> zeroinitializer
  %v371 = call <4 x float> @llvm.fma.v4f32(<4 x float> %v278, <4 x float> %v370, <4 x float> %v366)
  store <4 x float> %v371, ptr %v55, align 4
  %v372 = load <2 x float>, ptr %v56, align 4
  %v373 = insertelement <2 x float> poison, float %v368, i64 0
  %v374 = shufflevector <2 x float> %v373, <2 x float> poison, <2 x i32> zeroinitializer
  %v375 = call <2 x float> @llvm.fma.v2f32(<2 x float> %v286, <2 x float> %v374, <2 x float> %v372)
  store <2 x float> %v375, ptr %v56, align 4
  %v376 = load float, ptr %v57, align 4
  %v377 = call float @llvm.fma.f32(float %v292, float %v368, float %v376)
  store float %v377, ptr %v57, align 4
  %v380 = getelementptr i8, ptr %v67, i64 96
  %v382 = getelementptr i8, ptr %v72, i64 4
  %v383 = getelementptr i8, ptr %v75, i64 96
  %v378 = icmp ne ptr %v380, %v381
  br i1 %v378, label %b60, label %b379, !llvm.loop !0
b379:
  %v386 = getelementptr i8, ptr %v66, i64 288
  %v388 = getelementptr i8, ptr %v71, i64 36
  %v389 = getelementptr i8, ptr %v74, i64 288
  %v384 = icmp ne ptr %v386, %v387
  br i1 %v384, label %b58, label %b385, !llvm.loop !0
b385:
  %v390 = load <4 x float>, ptr %v34, align 16
  %v391 = fcmp ogt <4 x float> splat (float 0x0000000000000000), %v390
  %v392 = select <4 x i1> %v391, <4 x float> splat (float 0x0000000000000000), <4 x float> %v390
  store <4 x float> %v392, ptr %v396, align 4
  %v397 = load <2 x float>, ptr %v35, align 8
  %v398 = fcmp ogt <2 x float> splat (float 0x0000000000000000), %v397
  %v399 = select <2 x i1> %v398, <2 x float> splat (float 0x0000000000000000), <2 x float> %v397
  %v400 = getelementptr i8, ptr %v396, i64 16
  store <2 x float> %v399, ptr %v400, align 4
  %v401 = load float, ptr %v36, align 4
  %v402 = fcmp ogt float 0x0000000000000000, %v401
  %v403 = select i1 %v402, float 0x0000000000000000, float %v401
  %v404 = getelementptr i8, ptr %v396, i64 24
  store float %v403, ptr %v404, align 4
  %v405 = load <4 x float>, ptr %v37, align 4
  %v406 = fcmp ogt <4 x float> splat (float 0x0000000000000000), %v405
  %v407 = select <4 x i1> %v406, <4 x float> splat (float 0x0000000000000000), <4 x float> %v405
  %v408 = getelementptr i8, ptr %v396, i64 196
  store <4 x float> %v407, ptr %v408, align 4
  %v409 = load <2 x float>, ptr %v38, align 4
  %v410 = fcmp ogt <2 x float> splat (float 0x0000000000000000), %v409
  %v411 = select <2 x i1> %v410, <2 x float> splat (float 0x0000000000000000), <2 x float> %v409
  %v412 = getelementptr i8, ptr %v396, i64 212
  store <2 x float> %v411, ptr %v412, align 4
  %v413 = load float, ptr %v39, align 4
  %v414 = fcmp ogt float 0x0000000000000000, %v413
  %v415 = select i1 %v414, float 0x0000000000000000, float %v413
  %v416 = getelementptr i8, ptr %v396, i64 220
  store float %v415, ptr %v416, align 4
  %v417 = load <4 x float>, ptr %v40, align 8
  %v418 = fcmp ogt <4 x float> splat (float 0x0000000000000000), %v417
  %v419 = select <4 x i1> %v418, <4 x float> splat (float 0x0000000000000000), <4 x float> %v417
  %v420 = getelementptr i8, ptr %v396, i64 392
  store <4 x float> %v419, ptr %v420, align 4
  %v421 = load <2 x float>, ptr %v41, align 8
  %v422 = fcmp ogt <2 x float> splat (float 0x0000000000000000), %v421
  %v423 = select <2 x i1> %v422, <2 x float> splat (float 0x0000000000000000), <2 x float> %v421
  %v424 = getelementptr i8, ptr %v396, i64 408
  store <2 x float> %v423, ptr %v424, align 4
  %v425 = load float, ptr %v42, align 4
  %v426 = fcmp ogt float 0x0000000000000000, %v425
  %v427 = select i1 %v426, float 0x0000000000000000, float %v425
  %v428 = getelementptr i8, ptr %v396, i64 416
  store float %v427, ptr %v428, align 4
  %v429 = load <4 x float>, ptr %v43, align 4
  %v430 = fcmp ogt <4 x float> splat (float 0x0000000000000000), %v429
  %v431 = select <4 x i1> %v430, <4 x float> splat (float 0x0000000000000000), <4 x float> %v429
  %v432 = getelementptr i8, ptr %v396, i64 588
  store <4 x float> %v431, ptr %v432, align 4
  %v433 = load <2 x float>, ptr %v44, align 4
  %v434 = fcmp ogt <2 x float> splat (float 0x0000000000000000), %v433
  %v435 = select <2 x i1> %v434, <2 x float> splat (float 0x0000000000000000), <2 x float> %v433
  %v436 = getelementptr i8, ptr %v396, i64 604
  store <2 x float> %v435, ptr %v436, align 4
  %v437 = load float, ptr %v45, align 4
  %v438 = fcmp ogt float 0x0000000000000000, %v437
  %v439 = select i1 %v438, float 0x0000000000000000, float %v437
  %v440 = getelementptr i8, ptr %v396, i64 612
  store float %v439, ptr %v440, align 4
  %v441 = load <4 x float>, ptr %v46, align 16
  %v442 = fcmp ogt <4 x float> splat (float 0x0000000000000000), %v441
  %v443 = select <4 x i1> %v442, <4 x float> splat (float 0x0000000000000000), <4 x float> %v441
  %v444 = getelementptr i8, ptr %v396, i64 784
  store <4 x float> %v443, ptr %v444, align 4
  %v445 = load <2 x float>, ptr %v47, align 8
  %v446 = fcmp ogt <2 x float> splat (float 0x0000000000000000), %v445
  %v447 = select <2 x i1> %v446, <2 x float> splat (float 0x0000000000000000), <2 x float> %v445
  %v448 = getelementptr i8, ptr %v396, i64 800
  store <2 x float> %v447, ptr %v448, align 4
  %v449 = load float, ptr %v48, align 4
  %v450 = fcmp ogt float 0x0000000000000000, %v449
  %v451 = select i1 %v450, float 0x0000000000000000, float %v449
  %v452 = getelementptr i8, ptr %v396, i64 808
  store float %v451, ptr %v452, align 4
  %v453 = load <4 x float>, ptr %v49, align 4
  %v454 = fcmp ogt <4 x float> splat (float 0x0000000000000000), %v453
  %v455 = select <4 x i1> %v454, <4 x float> splat (float 0x0000000000000000), <4 x float> %v453
  %v456 = getelementptr i8, ptr %v396, i64 980
  store <4 x float> %v455, ptr %v456, align 4
  %v457 = load <2 x float>, ptr %v50, align 4
  %v458 = fcmp ogt <2 x float> splat (float 0x0000000000000000), %v457
  %v459 = select <2 x i1> %v458, <2 x float> splat (float 0x0000000000000000), <2 x float> %v457
  %v460 = getelementptr i8, ptr %v396, i64 996
  store <2 x float> %v459, ptr %v460, align 4
  %v461 = load float, ptr %v51, align 4
  %v462 = fcmp ogt float 0x0000000000000000, %v461
  %v463 = select i1 %v462, float 0x0000000000000000, float %v461
  %v464 = getelementptr i8, ptr %v396, i64 1004
  store float %v463, ptr %v464, align 4
  %v465 = load <4 x float>, ptr %v52, align 8
  %v466 = fcmp ogt <4 x float> splat (float 0x0000000000000000), %v465
  %v467 = select <4 x i1> %v466, <4 x float> splat (float 0x0000000000000000), <4 x float> %v465
  %v468 = getelementptr i8, ptr %v396, i64 1176
  store <4 x float> %v467, ptr %v468, align 4
  %v469 = load <2 x float>, ptr %v53, align 8
  %v470 = fcmp ogt <2 x float> splat (float 0x0000000000000000), %v469
  %v471 = select <2 x i1> %v470, <2 x float> splat (float 0x0000000000000000), <2 x float> %v469
  %v472 = getelementptr i8, ptr %v396, i64 1192
  store <2 x float> %v471, ptr %v472, align 4
  %v473 = load float, ptr %v54, align 4
  %v474 = fcmp ogt float 0x0000000000000000, %v473
  %v475 = select i1 %v474, float 0x0000000000000000, float %v473
  %v476 = getelementptr i8, ptr %v396, i64 1200
  store float %v475, ptr %v476, align 4
  %v477 = load <4 x float>, ptr %v55, align 4
  %v478 = fcmp ogt <4 x float> splat (float 0x0000000000000000), %v477
  %v479 = select <4 x i1> %v478, <4 x float> splat (float 0x0000000000000000), <4 x float> %v477
  %v480 = getelementptr i8, ptr %v396, i64 1372
  store <4 x float> %v479, ptr %v480, align 4
  %v481 = load <2 x float>, ptr %v56, align 4
  %v482 = fcmp ogt <2 x float> splat (float 0x0000000000000000), %v481
  %v483 = select <2 x i1> %v482, <2 x float> splat (float 0x0000000000000000), <2 x float> %v481
  %v484 = getelementptr i8, ptr %v396, i64 1388
  store <2 x float> %v483, ptr %v484, align 4
  %v485 = load float, ptr %v57, align 4
  %v486 = fcmp ogt float 0x0000000000000000, %v485
  %v487 = select i1 %v486, float 0x0000000000000000, float %v485
  %v488 = getelementptr i8, ptr %v396, i64 1396
  store float %v487, ptr %v488, align 4
  %v491 = getelementptr i8, ptr %v65, i64 32
  %v493 = getelementptr i8, ptr %v70, i64 36
  %v494 = getelementptr i8, ptr %v396, i64 28
  %v489 = icmp ne ptr %v491, %v492
  br i1 %v489, label %b32, label %b490, !llvm.loop !0
b490:
  %v497 = getelementptr i8, ptr %v64, i64 864
  %v498 = getelementptr i8, ptr %v395, i64 1568
  %v499 = add nuw nsw i64 %v2, 1
  %v495 = icmp ult i64 %v499, %stop
  br i1 %v495, label %b1, label %b496, !llvm.loop !0
b496:
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
