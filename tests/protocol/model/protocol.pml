/* The protocol as a model that SPIN searches to its end; docs/specification.md walks through it.
 *
 * Every option of the loop is one atomic step, so a crash may come between any two of them. All
 * budgets only shrink, so every run ends. "It goes on as long as faults are finite" is then the same
 * as "a run that can do nothing more has delivered every row", and SPIN finds any other end.
 *
 * Splits: A and B are bounded, of one row each; reader 1 reads them, and may send B back once. U is
 * unbounded and has ROWS rows; reader 0 reads one of them in each part.
 */

#ifndef CRASHES
#define CRASHES 2       /* so three incarnations */
#endif
#ifndef AHEAD
#define AHEAD 2         /* checkpointsAhead: 1 or 2 */
#endif
#define SLOTS 9
#ifndef ROWS
#define ROWS 3          /* of U; at most 3 */
#endif
#define NONE 255

/* Parts of a checkpoint. */
#define A 1
#define B 2
#define R 32            /* the rest of B: its second row, after the first was read */
#ifdef PARTS
#define BOUNDED_ROWS(part) ((part) | (((part) & B) -> R : 0))
#else
#define BOUNDED_ROWS(part) (part)
#endif
#define U 4             /* U from a position that the cut knows */
#define C 8             /* U continued: from where reader 0's commit for `from` ends */
#define IS_U 12

/* What a reader commit says. */
#define READ 1          /* all of it was read; of U one row, if there is one */
#define BACK 2          /* B is sent back, all else was read */
#define LEFT 3          /* written by the driver: Spark went on without this reader */
#define PART 4          /* of B only the first row was read, all else was read */
#define MORE 5          /* of U two rows were read, if there are two */
#define IS_READ(verdict) ((verdict) == READ || (verdict) == MORE)
/* What a part that starts at `start` has read, a bit for each row. */
#define U_ROWS(verdict) (start >= ROWS -> 0 : ((verdict) == MORE && start + 1 < ROWS -> 12 << start : 4 << start))
#define ALL_OF_U (28 & ((4 << ROWS) - 1))

/* A checkpoint object. Its number is its place in the chain: the parent of c is c - 1. That of one
 * which nobody can refer to any more (an orphan, or taken back) is used again, unlike its name. */
typedef Checkpoint {
    byte part0;         /* what reader 0 is assigned, and reader 1 */
    byte part1;
    byte from;          /* of U its position, of C the checkpoint that it continues */
    byte least;         /* where U's part begins at the earliest */
    byte most;          /* the position of U after this part, if nothing is left over */
    byte pending;       /* the enumerator's state: A and B that nobody has */
    byte at;            /* position of U, or NONE where a reader has it */
    int counted;        /* commits whose verdicts are in this state: key(checkpoint, reader) */
    bit durable;
    bit gone            /* deleted by retention, with its commits */
}
Checkpoint ck[SLOTS];
byte commit[SLOTS * 2]; /* create-only, by (checkpoint, reader) */
byte rest[SLOTS];       /* the remainder of U in reader 0's commit */
byte made = 1;          /* the next number */

/* Spark: the newest checkpoint in its commit log and in its offset log, and the batch between. */
byte done, logged;
byte accepted[2];       /* the verdict whose rows Spark has taken; NONE: it wants none of this reader */
bit in_sink;            /* the sink has the batch under way, by its number */
bit delivered;          /* and has said so to the Spark of this incarnation */
#ifdef PARTS
#define ALL_ROWS 6
#else
#define ALL_ROWS 5
#endif
byte sunk[ALL_ROWS];    /* how often A, B, U's rows and B's second row were delivered */
byte unwanted;          /* rows that nobody wanted, a bit each */
byte shortened;         /* the checkpoint of which Spark wanted only a part, */
bit is_left;            /* and whether that was counted */
byte attempt[3];        /* one of reader 0 and two of reader 1: 0 none, else what it will say */
byte zombie[2], haunts; /* attempts that survived a crash, and the checkpoint they read */
byte planned;           /* what `partitions` has said of U in the batch under way, plus 1 */

/* Faults of the store, one of each kind. SOON: it will happen to the next create. */
#define SOON 1
#define OVER NONE
#ifdef LOST_ANSWERS
byte lost;              /* the author of a create learns nothing; it may have succeeded or not */
byte unsure;            /* in memory: the checkpoint of which the coordinator does not know it */
#else
#define lost 0
#define unsure 0
#endif
#ifdef LATE_OBJECTS
byte late;              /* an object that can not be created again, and is not shown to all yet */
#else
#define late 0
#endif
#define commit_name(c, r) (2 + 2 * (c) + (r))
#define checkpoint_name(c) (32 + (c))
#define is_late(c, r) (late == commit_name(c, r))

/* The coordinator's memory: gone with a crash. */
bit alive;
byte handed, complete;  /* newest that was reported to Spark, newest that it has completed */
byte next1, next2;      /* cut and not handed out, oldest first; 0 none */
byte pending, at, most; /* of U: `at` and `most` as above */
byte open0, open1, from;/* sent since the last cut */
byte last_u;            /* the newest checkpoint in which U is with its reader */
int counted;
byte floor;             /* what is older may go */
byte early[SLOTS];      /* for broken gateways: where a continuation was released too early, plus 1 */
#ifdef RESTORE_FORGETS_HELD
byte restored;          /* the checkpoint whose continuations a restart has forgotten */
#endif
#ifdef LOST_NAME_IS_FREE
Checkpoint stored;      /* what was created under a name that is used again, */
byte stored_as;         /* and its number; 0 none */
#endif
#ifdef ORPHAN_FOR_PARENT
Checkpoint orphan;      /* of a dead incarnation, durable, */
byte orphan_of;         /* and its number; 0 none */
#endif

byte old;               /* what a superseded coordinator believes is the newest that is complete */
byte crashes, sent_back, cut_short, onces;
hidden byte start, rows, k, n, verdict, flag, created, told;

#define key(c, r) (1 << (2 * (c) + (r)))
#define is_counted(c, r) (counted & key(c, r))
#define newest (next2 -> next2 : (next1 -> next1 : handed))

/* Where U's part of `c` begins: known at the cut, or given by the commit that it resumes from. */
inline resolve(c) {
    if
    :: early[c] -> start = early[c] - 1
    :: !early[c] && (ck[c].part0 & C) ->
        assert(!ck[ck[c].from].gone);               /* nothing needed is deleted */
        assert(commit[2 * ck[c].from] != 0);        /* nothing starts before its release */
        start = rest[ck[c].from]
    :: !early[c] && (ck[c].part0 & U) -> start = ck[c].from
    :: else -> start = 0
    fi
}

/* What the store does to a create, in addition to it. */
#ifdef LOST_ANSWERS
#define answers if :: lost == SOON -> lost = OVER; told = 0 :: else fi
#else
#define answers skip
#endif
#ifdef LATE_OBJECTS
#define appears(name) if :: late == SOON -> late = name :: else fi
#else
#define appears(name) skip
#endif

/* The commit says at which record border the reader has stopped. */
#ifdef BORDER_IS_ASSUMED
#define READ_UP_TO(v) rest[c] = start + 1
#else
#define READ_UP_TO(v) rest[c] = (v == MORE && start + 1 < ROWS -> start + 2 : start + 1)
#endif

/* A reader, or the driver in its place, writes create-only; `verdict` is what counts. */
inline say(c, r, v) {
    created = 0; told = 1;
    if
#ifdef LAST_COMMIT_WINS
    :: true ->
#else
    :: commit[2 * c + r] == 0 ->
#endif
        commit[2 * c + r] = v;
        created = 1;
        appears(commit_name(c, r));
        if
        :: r == 0 && (ck[c].part0 & IS_U) ->
            resolve(c);
#ifdef BUDGET
            /* U is bounded: nobody continues a part that Spark has given up. */
            rest[c] = (v == LEFT -> ROWS : start);
            if :: v == LEFT -> unwanted = unwanted | (ALL_OF_U & ~((4 << start) - 1)) :: else fi;
#else
            rest[c] = start;
#endif
            if :: IS_READ(v) && start < ROWS -> READ_UP_TO(v) :: else fi;
            /* Acknowledged by an attempt whose rows Spark left unread, before it was given up. */
            if :: c == shortened && IS_READ(v) && !is_left -> unwanted = unwanted | U_ROWS(v) :: else fi
        :: else
        fi
    :: else
    fi;
    verdict = commit[2 * c + r];
    answers;
    /* Others could only find that. */
    if :: c == haunts -> zombie[r] = 0 :: else fi;
    if :: !zombie[0] && !zombie[1] -> haunts = 0 :: else fi;
    if :: (!ck[old].part0 || commit[2 * old]) && (!ck[old].part1 || commit[2 * old + 1]) -> old = 0
       :: else fi
}

/* What reader r has said of `c` reaches the enumerator. */
inline count(c, r) {
    counted = counted | key(c, r);
    if
    :: r == 1 && commit[2 * c + 1] == BACK -> pending = pending | B
    :: r == 1 && commit[2 * c + 1] == PART ->
#ifdef REST_RETURNS_WHOLE
        pending = pending | B
#else
#ifndef REST_IS_DROPPED
        pending = pending | R
#endif
#endif
    :: r == 0 && (ck[c].part0 & IS_U) ->
        /* The remainder belongs to the continuation of it, where one was sent, else to the enumerator. */
        flag = (next1 && (ck[next1].part0 & C) && ck[next1].from == c) ||
            (next2 && (ck[next2].part0 & C) && ck[next2].from == c) ||
            (c != handed && (ck[handed].part0 & C) && ck[handed].from == c) ||
            ((open0 & C) && from == c) || last_u != c;
#ifdef REMAINDER_TO_BOTH
        flag = 0;
#endif
#ifdef RESTORE_FORGETS_HELD
        if :: c < restored && (ck[restored].part0 & C) && ck[restored].from == c -> flag = 0 :: else fi;
#endif
#ifndef LEFTOVER_IS_DROPPED
        if :: !flag -> at = rest[c] :: else fi
#else
        skip
#endif
    :: else
    fi;
#ifdef OPENS_ON_FIRST
    if
    :: r == 1 && next1 && (ck[next1].part0 & C) && commit[2 * ck[next1].from] == 0 ->
        early[next1] = ck[next1].least + 1
    :: else
    fi;
#endif
#ifdef OPENS_THE_NEXT
    if
    :: r == 0 && next2 && (ck[next2].part0 & C) && commit[2 * ck[next2].from] == 0 ->
        early[next2] = ck[next2].least + 1
    :: else
    fi;
#endif
    skip
}

/* Splits, continuations and events are sent, as far as the next batch has room: a part a reader. */
/* U is continued only until its reader's commit is counted: then its remainder is with the enumerator. */
#define may_send0 (!open0 && ((at != NONE && at < ROWS) || (at == NONE && most < ROWS && !is_counted(last_u, 0))))
#define may_send1 (!open1 && pending)
inline send() {
    if
    :: may_send1 && (pending & A) -> open1 = A; pending = pending & ~A
    :: may_send1 && !(pending & A) -> open1 = pending; pending = 0
    :: else
    fi;
    if
    :: may_send0 && at != NONE -> open0 = U; from = at; most = at + 1; at = NONE
    :: may_send0 && at == NONE -> open0 = C; from = last_u; most++
    :: else
    fi
}

/* The cut: all that was sent, held or not, becomes a checkpoint with a name; another record opens. */
inline cut() {
    ck[made].part0 = open0;
    ck[made].part1 = open1;
    ck[made].from = from;
    if
    :: open0 & C -> ck[made].least = ck[from].least
    :: else -> ck[made].least = from
    fi;
    ck[made].most = most;
    ck[made].pending = pending;
    ck[made].at = at;
    ck[made].counted = counted;
#ifdef COUNTED_AFTER_CUT
    ck[made].counted = key(made, 0) - 1;
#endif
#ifdef COUNTS_NOT_WRITTEN
    if :: handed != complete -> ck[made].counted = counted & (key(handed, 0) - 1) :: else fi;
#endif
#ifdef CUT_OMITS_HELD
    if :: open1 && handed != complete && ck[handed].part1 && !is_counted(handed, 1) -> ck[made].part1 = 0
       :: else fi;
#endif
#ifdef GATEWAY_NEVER_CLOSES
    if
    :: (open0 & C) && commit[2 * from] == 0 -> early[made] = ck[made].least + 1
    :: else
    fi;
#endif
    if :: open0 -> last_u = made :: else fi;
    if
    :: handed == complete || next1 == 0 -> next1 = made
    :: else -> next2 = made
    fi;
    made++;
#ifdef CUT_TAKES_TWICE
    if :: next2 == 0 -> open0 = 0; from = 0 :: else -> open0 = 0; open1 = 0; from = 0 fi
#else
#ifdef RECORDS_NOT_ROTATED
    if :: handed != complete -> open0 = 0; from = 0 :: else -> open0 = 0; open1 = 0; from = 0 fi
#else
    open0 = 0; open1 = 0; from = 0
#endif
#endif
}

/* A checkpoint object is created. */
inline publish(c) {
    ck[c].durable = 1;
    told = 1;
#ifdef LOST_NAME_IS_FREE
    if :: c == stored_as -> copy(ck[c], stored); stored_as = 0 :: else fi;
#endif
    appears(checkpoint_name(c));
    answers;
#ifdef LOST_ANSWERS
    if :: !told -> unsure = c :: else fi
#else
    skip
#endif
}

/* What waits is taken back, newest first, and all of it is sent again. What goes on with a part that
 * comes back is dropped. */
inline take_back() {
    if
    :: next2 ->
#ifndef ABORT_FORGOTTEN
        open0 = (ck[next1].part0 -> ck[next1].part0 : ck[next2].part0);
        from = (ck[next1].part0 -> ck[next1].from : ck[next2].from);
        most = (ck[next1].part0 -> ck[next1].most : ck[next2].most);
#ifdef ABORT_OF_THE_LAST
        open0 = ck[next2].part0; from = ck[next2].from; most = ck[next2].most;
        open1 = open1 | ck[next2].part1;
#else
        open1 = open1 | ck[next1].part1 | ck[next2].part1;
#endif
#endif
        skip
    :: else ->
#ifndef ABORT_FORGOTTEN
        if :: ck[next1].part0 -> open0 = ck[next1].part0; from = ck[next1].from; most = ck[next1].most
           :: else fi;
        open1 = open1 | ck[next1].part1
#endif
    fi;
    if :: next2 -> forget(next2) :: else fi;
    forget(next1);
    made = handed + 1;
    next1 = 0; next2 = 0;
#ifdef LOST_ANSWERS
    unsure = 0;
#endif
    newest_u(handed)
}

/* `last_u` as of a chain's end. */
inline newest_u(c) {
    last_u = c;
    do
    :: last_u != 0 && !(ck[last_u].part0) -> last_u--
    :: else -> break
    od;
    skip
}

/* Attempts that outlive their batch or their driver, as far as they can still be first. */
inline haunt() {
    if
    :: !zombie[0] && !zombie[1] ->
        haunts = logged;
        zombie[0] = (commit[2 * logged] -> 0 : attempt[0]);
        zombie[1] = (commit[2 * logged + 1] -> 0 : (attempt[2] -> attempt[2] : attempt[1]));
        if :: !zombie[0] && !zombie[1] -> haunts = 0 :: else fi
    :: else
    fi
}

/* Nobody looks at it any more: one state for the searcher instead of many. */
inline forget(c) {
    ck[c].part0 = 0; ck[c].part1 = 0; ck[c].from = 0; ck[c].least = 0; ck[c].most = 0;
    ck[c].pending = 0; ck[c].at = 0; ck[c].counted = 0; commit[2 * c] = 0; commit[2 * c + 1] = 0;
    rest[c] = 0; early[c] = 0; ck[c].durable = 0;
#ifdef LATE_OBJECTS
    if :: is_late(c, 0) || is_late(c, 1) || late == checkpoint_name(c) -> late = OVER :: else fi
#else
    skip
#endif
}

#if defined(ORPHAN_FOR_PARENT) || defined(LOST_NAME_IS_FREE)
inline copy(target, found) {
    target.part0 = found.part0; target.part1 = found.part1; target.from = found.from;
    target.least = found.least; target.most = found.most; target.pending = found.pending;
    target.at = found.at; target.counted = found.counted
}
#endif

/* A coordinator opens the state that Spark's logs name. */
inline restore() {
    alive = 1;
    handed = logged; complete = done;
#ifdef ORPHAN_GOES_ON
    if
    :: logged == done && made > logged + 1 && ck[logged + 1].durable ->
        handed = logged + 1; complete = handed; made = handed + 1
    :: else -> made = logged + 1
    fi;
#endif
#ifdef ORPHAN_FOR_PARENT
    if :: orphan_of && orphan_of == logged -> copy(ck[logged], orphan) :: else fi;
#endif
#ifdef RESTORE_FORGETS_HELD
    restored = handed;
#endif
    assert(handed == 0 || ck[handed].durable);
    assert(handed == 0 || !ck[handed].gone);
    n = handed;
#ifdef LATE_IS_ABSENT
    if :: late == checkpoint_name(handed) -> n = done :: else fi;
#endif
    if
    :: n == 0 -> pending = A | B; at = 0; most = 0; counted = 0
    :: else ->
        pending = ck[n].pending; at = ck[n].at; most = ck[n].most;
        counted = ck[n].counted;
#ifdef RESTORE_FORGETS
        counted = counted | key(complete, 0) | key(complete, 1) | key(handed, 0) | key(handed, 1);
#endif
    fi;
    newest_u(n)
}

/* Everything that Spark has completed is counted. */
#define settled(c) (c > complete || ck[c].gone || \
    ((!ck[c].part0 || is_counted(c, 0)) && (!ck[c].part1 || is_counted(c, 1))))
#define all_settled (settled(1) && settled(2) && settled(3) && settled(4) && settled(5) && settled(6) && settled(7) && settled(8))

#define there(row) (sunk[row] || (unwanted & (1 << row)))
#ifdef PARTS
#define rest_delivered there(5)
#else
#define rest_delivered true
#endif
#define all_delivered (there(0) && there(1) && rest_delivered && there(2) && \
    (ROWS < 2 || there(3)) && (ROWS < 3 || there(4)))

#ifdef TWO_HELD
#define WITNESS assert(!(next2 && (ck[next1].part0 & C) && (ck[next2].part0 & C) && !commit[2 * handed]))
#endif
#ifdef OUT_OF_ORDER
#define WITNESS assert(!(next1 && ck[next1].part0 && ck[next1].part1 && ck[handed].part0 && \
    is_counted(handed, 1) && ck[handed].part1 && !commit[2 * handed]))
#endif
#ifdef ORPHANED_CHAIN
#define WITNESS_OF_A_CRASH assert(!(next1 && ck[next1].durable && next2 && ck[next2].durable))
#endif
#ifndef WITNESS
#define WITNESS skip
#endif
#ifndef WITNESS_OF_A_CRASH
#define WITNESS_OF_A_CRASH skip
#endif

init {
    do
    /* --- The coordinator ------------------------------------------------------------------- */

    :: d_step { !alive -> restore(); WITNESS }

    /* Ahead: while a batch runs and the next one is decided. */
    :: d_step {
        alive && handed != complete && made < SLOTS && (!next1 || (AHEAD == 2 && !next2)) &&
            (open0 || open1 || may_send0 || may_send1) ->
        send(); cut(); WITNESS
       }

    /* On request: Spark asks for what follows, and nothing waits. */
    :: d_step {
        alive && handed == complete && logged == done && !next1 && made < SLOTS && all_settled &&
            (open0 || open1 || may_send0 || may_send1) ->
        send(); cut()
       }

    /* Trigger.Once takes all there is, so what waits is taken back. */
    :: d_step { alive && onces < 1 && handed == complete && next1 -> onces++; take_back() }

    /* Writes arrive in any order. */
    :: d_step { alive && next1 && !ck[next1].durable -> publish(next1) }
    :: d_step { alive && next2 && !ck[next2].durable -> publish(next2); WITNESS }
#ifdef LOST_ANSWERS
    :: d_step { !lost -> lost = SOON }
    /* The create is repeated, refused, and what is there is read: it is the author's own. */
#ifdef LOST_NAME_IS_FREE
    :: d_step { alive && unsure && unsure == next1 ->
        copy(stored, ck[next1]); stored_as = next1; unsure = 0; take_back() }
    :: d_step { alive && unsure && unsure != next1 -> unsure = 0 }
#else
    :: d_step { alive && unsure -> unsure = 0 }
#endif
#endif
#ifdef LATE_OBJECTS
    :: d_step { !late -> late = SOON }
    :: d_step { late > SOON && late != OVER -> late = OVER }
#endif
    /* Commits are seen one by one, in any order, now or later. */
#ifdef COUNTED_TWICE
#define counts(c, r) (is_counted(c, r) && !(r == 1 && c == complete && c != handed))
#else
#define counts(c, r) is_counted(c, r)
#endif
#define COUNT(c) \
    :: d_step { alive && c <= handed && !ck[c].gone && ck[c].part0 && commit[2 * c] && \
        !counts(c, 0) -> count(c, 0) } \
    :: d_step { alive && c <= handed && !ck[c].gone && ck[c].part1 && commit[2 * c + 1] && \
        !counts(c, 1) -> count(c, 1); WITNESS }
    COUNT(1) COUNT(2) COUNT(3) COUNT(4) COUNT(5) COUNT(6) COUNT(7) COUNT(8)

#ifdef LOST_IS_SUCCESS
#define BELIEVES_ITSELF(c, r) (!told)
#else
#ifdef LATE_IS_OWN
#define BELIEVES_ITSELF(c, r) (!created && is_late(c, r))
#else
#define BELIEVES_ITSELF(c, r) 0
#endif
#endif
    /* Spark went on without a reader. That is written under the commit's name before it is counted;
     * a commit that is there, and was not visible yet, counts instead. */
#define FORGO(c, r) counted = counted | key(c, r); \
    if :: r == 0 && last_u == c -> resolve(c); at = start :: else fi
#ifdef ABANDONED_IN_MEMORY
#define LEAVE(c, r) is_left = is_left || (r == 0 && c == shortened); FORGO(c, r)
#else
/* If the answer is lost, what is there is read, now or later. */
#define LEAVE(c, r) say(c, r, LEFT); is_left = is_left || (r == 0 && c == shortened); \
    if \
    :: BELIEVES_ITSELF(c, r) -> FORGO(c, r) \
    :: !BELIEVES_ITSELF(c, r) && told -> count(c, r) \
    :: else \
    fi
#endif
#define ABANDON(c) \
    :: d_step { alive && c <= complete && !ck[c].gone && ck[c].part0 && !is_counted(c, 0) \
        -> LEAVE(c, 0) } \
    :: d_step { alive && c <= complete && !ck[c].gone && ck[c].part1 && !is_counted(c, 1) \
        -> LEAVE(c, 1) }
    ABANDON(1) ABANDON(2) ABANDON(3) ABANDON(4) ABANDON(5) ABANDON(6) ABANDON(7) ABANDON(8)

    /* A superseded one may do that, too, of what Spark had completed in its time. What it cuts has a
     * name of its own, which nobody learns. */
    :: d_step { old && ck[old].part0 && !commit[2 * old] ->
        is_left = is_left || old == shortened; say(old, 0, LEFT) }
    :: d_step { old && ck[old].part1 && !commit[2 * old + 1] -> say(old, 1, LEFT) }

    /* Retention, at any time. */
    :: d_step {
        alive && floor > 1 ->
        do
        :: floor > 1 -> floor--; forget(floor); ck[floor].gone = 1
        :: else -> break
        od;
        floor = 0
       }

    /* --- Spark ------------------------------------------------------------------------------ */

    /* latestOffset gives the next checkpoint when it and all before it are durable; Spark writes it
     * down. A crash in between is one before. */
    :: d_step {
#ifdef OFFSET_BEFORE_PUBLISH
        alive && handed == complete && logged == done && next1 ->
#else
        alive && handed == complete && logged == done && next1 && ck[next1].durable && next1 != unsure ->
#endif
        handed = next1; logged = next1; next1 = next2; next2 = 0
       }

    /* partitions, and an attempt begins. A commit that is there binds it. */
#define PLAN(r) \
    assert(ck[logged].durable); assert(!ck[logged].gone); \
    if \
    :: r == 0 -> \
        resolve(logged); \
        assert(planned == 0 || planned == start + 1);   /* repeatable */ \
        planned = start + 1 \
    :: else \
    fi
/* Before a continuation is planned, what it resumes from is known: the driver sees to that. */
#ifdef GATE_NOT_ASKED
#define is_released(c) 1
#else
#define is_released(c) (early[c] || !(ck[c].part0 & C) || commit[2 * ck[c].from])
#endif
#define is_unbound(c) (!commit[2 * (c) + 1] || is_late(c, 1))
#define runs(r) (alive && logged != done && handed == logged && !delivered && accepted[r] == 0)
    :: d_step { runs(0) && ck[logged].part0 && !attempt[0] && is_released(logged) -> PLAN(0);
        attempt[0] = (commit[2 * logged] -> commit[2 * logged] : READ) }
    :: d_step { runs(1) && ck[logged].part1 && !attempt[1] -> PLAN(1);
        attempt[1] = (commit[2 * logged + 1] -> commit[2 * logged + 1] : READ) }
#ifdef BUDGET
    /* Its time or rows are spent one border later. If it is lost it may still acknowledge, and the
     * next attempt may stop at another border. */
    :: d_step { runs(0) && ck[logged].part0 && !attempt[0] && is_released(logged) && !commit[2 * logged] ->
        PLAN(0); attempt[0] = (start + 1 < ROWS -> MORE : READ) }
    :: d_step { runs(0) && attempt[0] && !commit[2 * logged] && !haunts ->
        haunts = logged; zombie[0] = attempt[0]; attempt[0] = 0 }
#endif
#ifdef LATE_OBJECTS
    /* The commit is there, and this executor does not see it yet. */
    :: d_step { runs(1) && is_late(logged, 1) && !attempt[1] -> PLAN(1); attempt[1] = READ }
#endif
    /* Another one next to it, or alone, that cannot read B. (A second one of reader 0 says the same.) */
    :: d_step { runs(1) && (ck[logged].part1 & B) && !attempt[2] && is_unbound(logged) &&
        sent_back < 1 -> PLAN(1); sent_back++; attempt[2] = BACK }
#ifdef PARTS
    /* Or one whose byte limit ends within B. */
    :: d_step { runs(1) && (ck[logged].part1 & B) && !attempt[2] && is_unbound(logged) &&
        sent_back < 1 -> PLAN(1); sent_back++; attempt[2] = PART }
#endif

    /* An attempt ends: it acknowledges. Spark takes the rows of the first that agrees with what
     * counts; one that does not agree fails, and is started again. */
#ifdef BORDER_NOT_FOLLOWED
#define FOLLOWS(verdict, own) (verdict == own || (IS_READ(verdict) && IS_READ(own)))
#else
#define FOLLOWS(verdict, own) (verdict == own)
#endif
#define END(r, i) \
    :: d_step { runs(r) && attempt[i] -> \
        say(logged, r, attempt[i]); \
        if \
        :: (told && FOLLOWS(verdict, attempt[i])) || BELIEVES_ITSELF(logged, r) -> \
            accepted[r] = attempt[i] \
        :: else \
        fi; \
        attempt[i] = 0 }
    END(0, 0) END(1, 1) END(1, 2)

    /* One that outlived its driver, or that lost, acknowledges too; Spark never takes its rows. */
    :: d_step { zombie[0] -> say(haunts, 0, zombie[0]); zombie[0] = 0 }
    :: d_step { zombie[1] -> say(haunts, 1, zombie[1]); zombie[1] = 0 }

    /* A limit downstream: the batch ends without this reader's rows. */
    :: d_step { runs(0) && cut_short < 1 && ck[logged].part0 && is_released(logged) -> cut_short++; accepted[0] = NONE;
        shortened = logged; resolve(logged);
        if :: IS_READ(commit[2 * logged]) -> unwanted = unwanted | U_ROWS(commit[2 * logged]) :: else fi }
    :: d_step { runs(1) && cut_short < 1 && ck[logged].part1 -> cut_short++; accepted[1] = NONE }

    /* The sink has each batch once, by its number. */
    :: d_step {
        alive && logged != done && handed == logged && !delivered &&
            (accepted[0] || !ck[logged].part0) && (accepted[1] || !ck[logged].part1) ->
        rows = 0;
        if
        :: ck[logged].part0 && IS_READ(accepted[0]) -> resolve(logged); rows = U_ROWS(accepted[0])
        :: else
        fi;
        if
        :: accepted[1] == READ -> rows = rows | BOUNDED_ROWS(ck[logged].part1)
        :: accepted[1] == BACK -> rows = rows | (ck[logged].part1 & A)
        :: accepted[1] == PART -> rows = rows | ck[logged].part1
        :: accepted[1] == NONE || accepted[1] == LEFT ->
            unwanted = unwanted | BOUNDED_ROWS(ck[logged].part1)
        :: else
        fi;
        if
        :: !in_sink ->
            in_sink = 1;
            k = 0;
            do
            :: k < ALL_ROWS ->
                if :: rows & (1 << k) -> assert(sunk[k] == 0); sunk[k] = 1 :: else fi;
                k++
            :: else -> break
            od
        :: else
        fi;
        delivered = 1
       }
    :: d_step {
        alive && delivered ->
        /* A loser of two attempts may go on. */
        haunt();
        done = logged; in_sink = 0; delivered = 0;
        accepted[0] = 0; accepted[1] = 0;
        attempt[0] = 0; attempt[1] = 0; attempt[2] = 0;
        complete = done;        /* Spark asks for what follows, which proves it */
        /* Kept: the newest, and those before it that may have been in flight when it was cut. */
#ifdef PRUNES_TOO_MUCH
        floor = done;
#else
        floor = (done > AHEAD + 1 -> done - AHEAD - 1 : 0);
#endif
        planned = 0
       }

    /* --- Faults ------------------------------------------------------------------------------ */

    :: d_step {
        alive && crashes < CRASHES ->
        crashes++; alive = 0;
        old = (complete && ((ck[complete].part0 && !commit[2 * complete]) ||
            (ck[complete].part1 && !commit[2 * complete + 1])) -> complete : 0);
        if :: logged != done -> haunt() :: else fi;
        WITNESS_OF_A_CRASH;
#ifdef ORPHAN_FOR_PARENT
        if
        :: made > logged + 1 && ck[logged + 1].durable && !orphan_of ->
            orphan_of = logged + 1; copy(orphan, ck[logged + 1])
        :: else
        fi;
#endif
#ifndef ORPHAN_GOES_ON
        /* What Spark does not know is an orphan: its name is never used again, and its number may. */
        do
        :: made > logged + 1 -> made--; forget(made)
        :: else -> break
        od;
#endif
        attempt[0] = 0; attempt[1] = 0; attempt[2] = 0;
        accepted[0] = 0; accepted[1] = 0; delivered = 0;
        handed = 0; complete = 0; next1 = 0; next2 = 0;
        pending = 0; at = 0; most = 0; open0 = 0; open1 = 0; from = 0; last_u = 0; counted = 0; floor = 0;
#ifdef LOST_ANSWERS
        unsure = 0;
#endif
#ifdef LOST_NAME_IS_FREE
        stored_as = 0;
#endif
        skip
       }

    /* The only end that is one. */
    :: all_delivered && logged == done -> break
    od
}
