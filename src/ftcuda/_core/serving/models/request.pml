/* The word of a request (request.hpp): two threads that wait for it, and two that want to end it.

   Properties: it ends once; who is told that it is over sees how it ended; nobody who waits sleeps for ever. */

#define PENDING 0
#define ENDING 1
#define OVER 2
#define HAS_SLEEPERS 8

byte word = PENDING;
byte status = 0;   /* of who ended it: 1 or 2 */
byte ended = 0;
bool sleeps[2];    /* a thread sleeps at the word */

inline wait_at(thread, value) {
    /* The system looks at the word and goes to sleep in one step. */
    if
    :: atomic { word == value -> sleeps[thread] = true };
       !sleeps[thread]
    :: atomic { word != value -> skip }
    fi
}

inline wake() { atomic { sleeps[0] = false; sleeps[1] = false } }

proctype Waits(byte thread) {
    byte seen;
    do
    :: seen = word;
       if
       :: (seen & 7) >= OVER -> break
       :: else ->
#ifdef MUTANT_SLEEPS_UNSEEN
          wait_at(thread, seen)
#else
          if
          :: (seen & HAS_SLEEPERS) == 0 ->
             atomic {
                 if
                 :: word == seen -> word = seen | HAS_SLEEPERS; seen = seen | HAS_SLEEPERS
                 :: else -> seen = 255
                 fi
             }
          :: else
          fi;
          if
          :: seen != 255 -> wait_at(thread, seen)
          :: else
          fi
#endif
       fi
    od;
    assert(status != 0)  /* who sees that it is over sees how */
}

proctype Ends(byte how) {
    byte before;
    bool mine = false;
#ifdef MUTANT_ENDS_WITHOUT_A_CLAIM
    if
    :: (word & 7) == PENDING -> mine = true
    :: else
    fi;
#else
    atomic {
        if
        :: (word & 7) == PENDING -> word = (word & HAS_SLEEPERS) | ENDING; mine = true
        :: else
        fi
    };
#endif
    if
    :: mine ->
#ifdef MUTANT_SAYS_SO_BEFORE_HOW
       atomic { before = word; word = OVER };
       status = how;
#else
       status = how;
       atomic { before = word; word = OVER };
#endif
       ended++;
       assert(ended == 1);
       if
#ifdef MUTANT_WAKES_NOBODY
       :: false -> wake()
#else
       :: (before & HAS_SLEEPERS) != 0 -> wake()
#endif
       :: else
       fi
    :: else
    fi
}

init { atomic { run Waits(0); run Waits(1); run Ends(1); run Ends(2) } }
