/* Slabs of a queue (slab.hpp, queue.hpp): three threads submit rows, a fourth one takes slabs away, full or not.

   Properties: each row is taken once, after it was written, and from a slab that nobody writes to meanwhile; nobody
   waits for ever. Slabs are used again, also while a thread still has an old one in its hands. */

#define CAPACITY 2
#define SLABS 3
#define NONE 9
#define CLOSED 64
#define ROWS 4    /* of all threads: 1, 1 and 2 */

byte taken[SLABS];          /* with CLOSED */
byte written[SLABS];
byte next[SLABS];
byte row_of[SLABS * CAPACITY];  /* which row was written there; NONE */
bool being_read[SLABS];
byte open = 0, at_hand = NONE, first = 0;
bool is_free[SLABS];
byte over[ROWS];
byte count = 0;             /* rows that are over */

inline follow(slab, following) {
    written[following] = 0; next[following] = NONE;
    taken[following] = 0;
    next[slab] = following;
    open = following
}

inline copy(slab, place, row) {
    assert(!being_read[slab]);
    assert(row_of[slab * CAPACITY + place] == NONE);
    row_of[slab * CAPACITY + place] = row
}

proctype Submits(byte begin; byte rows) {
    byte row = 0, slab, before, got, following, each;
    do
    :: row == rows -> break
    :: else ->
       slab = open;
       before = CLOSED;
       if
       :: taken[slab] < CAPACITY ->
          atomic { before = taken[slab]; taken[slab] = before + rows - row }
       :: else
       fi;
       if
       :: before >= CAPACITY ->
          (open != slab || taken[slab] < CAPACITY)
       :: else ->
          got = rows - row;
          if
          :: got > CAPACITY - before -> got = CAPACITY - before
          :: else
          fi;
          if
          :: before + got == CAPACITY ->
             atomic { at_hand != NONE -> following = at_hand; at_hand = NONE };
             follow(slab, following)
          :: else
          fi;
          each = 0;
          do
          :: each == got -> break
          :: else -> copy(slab, before + each, begin + row + each); each++
          od;
          written[slab] = written[slab] + got;  /* one step */
          row = row + got
       fi
    od
}

inline replenish() {
    if
    :: at_hand == NONE ->
       if
       :: is_free[0] -> is_free[0] = false; at_hand = 0
       :: is_free[1] -> is_free[1] = false; at_hand = 1
       :: is_free[2] -> is_free[2] = false; at_hand = 2
       :: else
       fi
    :: else
    fi
}

proctype Takes() {
    byte slab, before, rows, following, each, row;
    do
    :: count == ROWS -> break
    :: else ->
       (taken[first] & 63) != 0 || count == ROWS;
       slab = first;
#ifdef MUTANT_CLOSES_WITHOUT_A_WORD
       before = taken[slab];
#else
       atomic { before = taken[slab]; taken[slab] = before | CLOSED };
#endif
       rows = before;
       if
       :: rows > CAPACITY -> rows = CAPACITY
       :: else
       fi;
       if
       :: before < CAPACITY ->
          do
          :: at_hand != NONE -> following = at_hand; at_hand = NONE; break
          :: else -> replenish()
          od;
          follow(slab, following)
       :: else
       fi;
       do
#ifdef MUTANT_WAITS_FOR_NO_WRITER
       :: next[slab] != NONE -> break
#else
       :: next[slab] != NONE && written[slab] == rows -> break
#endif
#ifndef MUTANT_KEEPS_NONE_AT_HAND
       :: else -> replenish()
#endif
       od;
       first = next[slab];
       being_read[slab] = true;
       each = 0;
       do
       :: each == rows -> break
       :: else ->
          row = row_of[slab * CAPACITY + each];
          assert(row != NONE);
          row_of[slab * CAPACITY + each] = NONE;
          over[row]++;
          assert(over[row] == 1);
          count++;
          each++
       od;
       being_read[slab] = false;
       is_free[slab] = true;
#ifndef MUTANT_KEEPS_NONE_AT_HAND
       replenish()
#endif
    od
}

init {
    atomic {
        byte each;
        for (each : 0 .. SLABS - 1) { next[each] = NONE; taken[each] = CLOSED; is_free[each] = true }
        for (each : 0 .. SLABS * CAPACITY - 1) { row_of[each] = NONE }
        taken[0] = 0; is_free[0] = false; is_free[1] = false; at_hand = 1;
        run Submits(0, 1); run Submits(1, 1); run Submits(2, 2); run Takes()
    }
}
