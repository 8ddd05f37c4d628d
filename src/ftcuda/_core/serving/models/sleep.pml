/* How the thread of a batcher goes to sleep (Batcher::wake and sleep), where a processor keeps stores back: each thread
   has a buffer, from which its stores come to memory some time later, in their order.

   Property: what was submitted is looked at; the thread does not sleep while there is something new. In the code a sleep
   ends after a tenth of a second anyway, which here it does not. */

#define SUBMISSIONS 2

byte news = 0;
bool sleeps = false, is_asleep = false;
byte looked_at = 0;

/* The thread's buffer for `sleeps`, which only it and those who wake it write. */
bool kept_back = false, value = false;

inline store_sleeps(to) {
    /* not before the last one came to memory */
    atomic { !kept_back -> kept_back = true; value = to }
}
inline fence() { !kept_back }

active proctype Memory() {
end:
    do
    :: atomic { kept_back -> sleeps = value; kept_back = false }
    od
}

active [SUBMISSIONS] proctype Submits() {
    bool before;
    news++;  /* one step, which waits for all stores before it */
#ifdef MUTANT_NEVER_LOOKS
    skip
#else
    if
    :: sleeps ->
       atomic { before = sleeps; sleeps = false };
       if
       :: before -> is_asleep = false
       :: else
       fi
    :: else
    fi
#endif
}

active proctype Runs() {
    byte seen;
    do
    :: looked_at == SUBMISSIONS -> break
    :: else ->
       seen = news;
       looked_at = seen;  /* at the slabs */
       if
       :: looked_at == SUBMISSIONS -> break
       :: else
       fi;
       store_sleeps(true);
#ifndef MUTANT_KEEPS_ITS_STORE_BACK
       fence();
#endif
#ifdef MUTANT_LOOKS_ONCE
       is_asleep = true;
#else
       if
       :: news == seen ->
          /* The system looks at the word and goes to sleep in one step; it sees the thread's own store. */
          atomic {
              if
              :: sleeps || kept_back -> is_asleep = true
              :: else
              fi
          }
       :: else
       fi;
#endif
       !is_asleep;
       store_sleeps(false)
    od
}
