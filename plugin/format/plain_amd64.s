#include "textflag.h"

#define FILL(word, to) \
	MOVQ       $word, AX; \
	MOVQ       AX, to; \
	PUNPCKLQDQ to, to

// CONTINUES jumps to done unless the byte in reg continues a character.
#define CONTINUES(reg) \
	MOVL reg, BX; \
	ANDL $0xc0, BX; \
	CMPL BX, $0x80; \
	JNE  done

// func escapeBlocks(dst, src *byte, n, readable, room int, pass bool) (read, wrote int)
TEXT ·escapeBlocks(SB), NOSPLIT, $0-64
	MOVQ    dst+0(FP), DI
	MOVQ    src+8(FP), SI
	MOVQ    n+16(FP), R8
	ADDQ    SI, R8                   // the end of the text
	MOVQ    readable+24(FP), R9
	LEAQ    -16(SI)(R9*1), R9        // the last place to load from
	MOVQ    room+32(FP), R10
	LEAQ    -32(DI)(R10*1), R10      // the last place to begin a turn at: 16 bytes, and the longest that one turn adds
	MOVBLZX pass+40(FP), R12
	LEAQ    ·escapes(SB), R11
	FILL(0x2020202020202020, X8)     // blanks
	FILL(0x2222222222222222, X9)     // quotes
	FILL(0x5c5c5c5c5c5c5c5c, X10)    // backslashes
	FILL(0x7f7f7f7f7f7f7f7f, X11)

loop:
	CMPQ SI, R8
	JCC  done
	CMPQ SI, R9
	JHI  done
	CMPQ DI, R10
	JHI  done

	// AX: one bit for each byte that is special. What is not ASCII is negative, and so below the blank too.
	MOVOU    (SI), X0
	MOVOU    X0, (DI)
	MOVOU    X8, X1
	PCMPGTB  X0, X1
	MOVOU    X9, X2
	PCMPEQB  X0, X2
	MOVOU    X10, X3
	PCMPEQB  X0, X3
	PCMPEQB  X11, X0
	POR      X2, X1
	POR      X3, X0
	POR      X1, X0
	PMOVMSKB X0, AX
	MOVQ     R8, CX
	SUBQ     SI, CX
	CMPQ     CX, $16
	JCS      tail
	TESTL    AX, AX
	JNE      special
	ADDQ     $16, SI
	ADDQ     $16, DI
	JMP      loop

tail: // only CX bytes of the block are of the text
	MOVL  $1, DX
	SHLL  CX, DX
	DECL  DX
	ANDL  DX, AX
	JNE   special
	ADDQ  CX, SI
	ADDQ  CX, DI
	JMP   done

special:
	BSFL    AX, AX
	ADDQ    AX, SI
	ADDQ    AX, DI
	MOVBLZX (SI), AX
	CMPL    AX, $0x80
	JCC     wide
	MOVBLZX (R11)(AX*1), DX
	TESTL   DX, DX
	JEQ     done
	SHLL    $8, DX
	ORL     $0x5c, DX
	MOVW    DX, (DI)
	INCQ    SI
	ADDQ    $2, DI
	JMP     loop

wide: // a valid character of two or three bytes is copied
	TESTL   R12, R12
	JEQ     done
	MOVQ    R8, CX
	SUBQ    SI, CX
	CMPL    AX, $0xc2
	JCS     done
	CMPQ    CX, $2
	JCS     done
	MOVBLZX 1(SI), DX
	CONTINUES(DX)
	CMPL    AX, $0xe0
	JCC     three
	MOVB    AX, (DI)
	MOVB    DX, 1(DI)
	ADDQ    $2, SI
	ADDQ    $2, DI
	JMP     loop

three:
	CMPL    AX, $0xf0
	JCC     done
	CMPQ    CX, $3
	JCS     done
	MOVBLZX 2(SI), R13
	CONTINUES(R13)
	CMPL    AX, $0xe0 // below 0xa0 follows what fits in two bytes
	JNE     surrogates
	CMPL    DX, $0xa0
	JCS     done

surrogates:
	CMPL AX, $0xed
	JNE  copy
	CMPL DX, $0xa0
	JCC  done

copy:
	MOVB AX, (DI)
	MOVB DX, 1(DI)
	MOVB R13, 2(DI)
	ADDQ $3, SI
	ADDQ $3, DI
	JMP  loop

done:
	SUBQ src+8(FP), SI
	SUBQ dst+0(FP), DI
	MOVQ SI, read+48(FP)
	MOVQ DI, wrote+56(FP)
	RET
