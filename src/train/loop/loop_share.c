/* The remaining workers read the rest of a lost worker's share, each after it
 * has reached the end of an epoch in its own share. */
#include "train/loop/loop_priv.h"

#include "base/log.h"

void pl_loop_share_end(pl_loop *l)
{
    if (l->other != NULL)
        pl_loop_forget_batch(l);
    pl_reader_free(l->other);
    l->other = NULL;
    if (l->ahead != NULL)
        pl_ahead_turn(l->ahead, l->reader);
}

/* Read the own share from the course's position; discard batches read ahead. */
static pl_status go_home(pl_loop *l)
{
    if (l->ahead != NULL)
        PL_TRY(pl_ahead_skip(l->ahead));
    pl_loop_share_end(l);
    l->next_read = l->course.own;
    pl_reader_go(l->reader, l->course.own);
    return PL_OK;
}

static pl_status read_other(pl_loop *l)
{
    const pl_course *course = &l->course;
    pl_reader_opts order = l->opts->order;
    order.worker = course->reads;
    PL_TRY(go_home(l));
    PL_TRY(pl_reader_new(&l->other, l->opts->train, &order));
    pl_reader_go(l->other, course->other_own);
    if (l->ahead != NULL)
        pl_ahead_turn(l->ahead, l->other);
    pl_log(PL_LOG_INFO,
           "worker %d was lost: reading its data share, batches %lld to %lld",
           course->reads, (long long)course->other_own,
           (long long)course->other_end - 1);
    return PL_OK;
}

pl_status pl_loop_share(pl_loop *l)
{
    pl_sync *sync = l->opts->sync;
    pl_course *course = &l->course;
    int64_t own = course->own;
    bool home = l->other != NULL || course->astray;
    pl_share share;
    PL_TRY(sync->ops->data->share(sync, course->own, pl_course_waits(course),
                                  &share));
    pl_loop_spent(l, PL_LOOP_WAIT);
    pl_course_shared(course, &share);
    if (course->reads != course->opts.worker)
        return read_other(l);
    return home || course->own != own ? go_home(l) : PL_OK;
}
