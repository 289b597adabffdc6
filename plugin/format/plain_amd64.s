#include "textflag.h"

// CHECK copies the 16 bytes at offset BX and sets AX to the mask of those that are special.
// A byte that is not ASCII is negative, and so below the blank too.
#define CHECK \
	MOVOU    (SI)(BX*1), X0; \
	MOVOU    X0, (DI)(BX*1); \
	MOVOU    X8, X1; \
	PCMPGTB  X0, X1; \
	MOVOU    X9, X2; \
	PCMPEQB  X0, X2; \
	MOVOU    X10, X3; \
	PCMPEQB  X0, X3; \
	PCMPEQB  X11, X0; \
	POR      X2, X1; \
	POR      X3, X0; \
	POR      X1, X0; \
	PMOVMSKB X0, AX; \
	TESTL    AX, AX

#define FILL(word, to) \
	MOVQ       $word, AX; \
	MOVQ       AX, to; \
	PUNPCKLQDQ to, to

// func copyBlocks(dst, src *byte, n int) int
TEXT ·copyBlocks(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	FILL(0x2020202020202020, X8)  // blanks
	FILL(0x2222222222222222, X9)  // quotes
	FILL(0x5c5c5c5c5c5c5c5c, X10) // backslashes
	FILL(0x7f7f7f7f7f7f7f7f, X11)
	SUBQ $16, CX                  // where the last block begins
	XORQ BX, BX

loop:
	CHECK
	JNZ  found
	ADDQ $16, BX
	CMPQ BX, CX
	JLS  loop

	// The last block overlaps the one before it, whose bytes are not special.
	ADDQ $16, CX
	CMPQ BX, CX
	JEQ  done
	LEAQ -16(CX), BX
	CHECK
	JNZ  found
	MOVQ CX, BX

done:
	MOVQ BX, ret+24(FP)
	RET

found:
	BSFL AX, AX
	ADDQ AX, BX
	MOVQ BX, ret+24(FP)
	RET
