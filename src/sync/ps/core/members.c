/* The members of the job: decides whether a task may join, whether it is the
 * same process as before, when all must join again, and when a task that said
 * goodbye may exit.
 *
 *   ABSENT -> HERE   it was admitted
 *   HERE -> LOST     silent or stuck (watch.c)
 *   HERE -> LEFT     it said goodbye, was dismissed, or is a lost evaluator
 *   LOST -> HERE     its process was heard again, or a new one was admitted
 *   LOST -> LEFT     given up (watch.c); ABSENT -> LEFT after a rollback
 *   LEFT -> HERE     admitted again; a worker, also when the job is rolled back
 *
 * Invariants:
 *   J1  Server 0 assigns each process that it admits an incarnation of its own,
 *       and no other server assigns any; two processes of server 0 assign
 *       different ones.
 *   J2  A JOIN that is refused changes nothing.
 *   J3  Requests and heartbeats of a process that was replaced change nothing.
 *   J4  A gradient that was complete when its worker rejoined counts as the
 *       mode specifies (async.c, I1 to I3); an incomplete one is never
 *       completed.
 *   J5  A new process of a server that had joined has no parameters: the job is
 *       rolled back immediately or, if the chief has left, as soon as a chief
 *       is back.
 *   J6  The goodbye of a worker other than the chief is answered only when the
 *       chief is done: until then it may be needed again.  A rollback to the
 *       end after that does not need it. */
#include "sync/ps/core/core_priv.h"
#include "sync/ps/modes/mode.h"

#include "base/log.h"
#include "base/mem.h"
#include "job/member/settings.h"

#include <stdio.h>
#include <string.h>

#define REPORT_MOST ((uint32_t)1 << 20)
#define MS          INT64_C(1000000)

bool pl_core_counts(const pl_ps_core *core, const pl_member *member)
{
    bool chief = member == core->members;
    if (member->state == PL_MEMBER_HERE || member->state == PL_MEMBER_LEFT)
        return member->state == PL_MEMBER_HERE;
    /* The end waits for no absent task but the chief, which has to save and to
     * report; after an interrupt not even for the chief. */
    if (core->stopping && (!chief || core->interrupted))
        return false;
    return member->state == PL_MEMBER_ABSENT ||
           core->opts.on_loss == PL_ON_LOSS_WAIT || chief ||
           (core->opts.supervised && !core->mode->lock_step);
}

int32_t pl_core_active(const pl_ps_core *core)
{
    int32_t count = 0;
    for (int32_t w = 0; w < core->opts.workers; w++)
        count += pl_core_counts(core, &core->members[w]);
    return count;
}

bool pl_core_servers_here(const pl_ps_core *core)
{
    for (int32_t j = 1; pl_core_leads(core) && j < core->opts.ps; j++)
        if (core->members[core->opts.workers + 1 + j].state == PL_MEMBER_ABSENT)
            return false;
    return true;
}

static void refuse_join(pl_ps_core *core, const pl_message *message,
                        const char *why)
{
    if (pl_burst_shows(&core->refusals, core->now_ns))
        pl_log(PL_LOG_WARN, "a task that wants to join was refused: %s", why);
    pl_core_send_text(core, message->from,
                      pl_core_stamp(pl_ps_refuse_encode(false, 0),
                                    message->frame.incarnation),
                      why);
}

static bool speaks_for(const pl_ps_core_opts *opts, pl_principal who,
                       int32_t id)
{
    int32_t workers = opts->workers;
    pl_principal is =
        id < workers    ? (pl_principal) { PL_PRINCIPAL_WORKER, id }
        : id == workers ? (pl_principal) { PL_PRINCIPAL_EVALUATOR, 0 }
                        : (pl_principal) { PL_PRINCIPAL_PS, id - workers - 1 };
    return pl_principal_permits(who, is);
}

/* Get the number of the member that a JOIN claims to be. */
static pl_status identify(const pl_ps_core_opts *opts,
                          const pl_ps_join_text *join, pl_principal who,
                          int32_t *id)
{
    const char *role = join->role;
    int32_t index = join->index, workers = opts->workers;
    int32_t count = strcmp(role, "worker") == 0      ? workers
                    : strcmp(role, "ps") == 0        ? opts->ps
                    : strcmp(role, "evaluator") == 0 ? opts->evaluator
                                                     : 0;
    if (index >= count)
        return PL_FAIL(PL_USAGE,
                       "%s %d: the job of this ps has %d workers, %d ps and "
                       "%s evaluator",
                       role, index, workers, opts->ps,
                       opts->evaluator ? "an" : "no");
    int32_t first = role[0] == 'w' ? 0 : role[0] == 'e' ? workers : workers + 1;
    *id = first + index;
    char proved[PL_PRINCIPAL_TEXT];
    pl_principal_text(who, proved);
    if (!speaks_for(opts, who, *id))
        return PL_FAIL(PL_USAGE,
                       "it claims to be %s %d, but its keys are "
                       "those of %s",
                       role, index, proved);
    return PL_OK;
}

static pl_status compare_settings(const pl_ps_core_opts *opts,
                                  const pl_ps_join_text *join)
{
    char where[32];
    if (opts->settings == NULL)
        return PL_OK;
    if (join->settings == NULL)
        return PL_FAIL(PL_FORMAT, "join: settings: missing");
    snprintf(where, sizeof where, "at ps %d", opts->index);
    return pl_settings_compare(join->settings, "here", opts->settings, where);
}

pl_status pl_ps_join_check(const pl_ps_core_opts *opts,
                           const pl_ps_join_text *join, pl_principal who,
                           int32_t *member)
{
    PL_TRY(identify(opts, join, who, member));
    return compare_settings(opts, join);
}

/* Workers whose model has another size cannot use this partition. */
static pl_status compare_sizes(const pl_ps_core *core,
                               const pl_ps_join_text *join)
{
    const pl_ps_core_opts *opts = &core->opts;
    const struct {
        const char *name;
        int64_t mine, theirs;
    } sizes[] = {
        { "floats", opts->floats, join->floats },
        { "table_first", opts->table_first, join->table_first },
        { "table_count", opts->table_count, join->table_count },
    };
    if (opts->floats == 0 || !join->has_size)
        return PL_OK;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i].theirs != sizes[i].mine)
            return PL_FAIL(PL_USAGE,
                           "its model has %s %lld, that of the job %lld: do "
                           "all tasks read the same data?",
                           sizes[i].name, (long long)sizes[i].theirs,
                           (long long)sizes[i].mine);
    return PL_OK;
}

/* Whether the same process joins again. */
static bool is_known(const pl_member *member, const pl_message *message)
{
    return member->peer == message->from && member->state != PL_MEMBER_ABSENT;
}

/* Whether it is too late to join.  A server of the job that lost contact with
 * server 0 while the notification of the end was in flight must still receive
 * that: refusing it would make the server, and so the job, fail. */
static bool is_over(const pl_ps_core *core, const pl_member *member, bool known)
{
    bool server = pl_core_id(core, member) > core->opts.workers;
    return core->failed || (core->told && !(known && server));
}

static pl_status check_job(pl_ps_core *core, const pl_ps_join_text *join,
                           const pl_member *member, bool known)
{
    const char *text = join->job;
    char own[20];
    pl_ps_job_text(core->job, own);
    if (text[0] != '\0' && core->claimed && strcmp(text, own) != 0)
        return PL_FAIL(PL_USAGE,
                       "this task belongs to job %s, but ps %d serves job %s: "
                       "check the addresses",
                       text, core->opts.index, own);
    if (is_over(core, member, known))
        return PL_FAIL(PL_CLOSED, "the job is over%s%s",
                       core->why[0] != '\0' ? ": " : "", core->why);
    return PL_OK;
}

/* All tasks rejoin; a task that misses this message learns it by its next
 * heartbeat. */
static void begin_generation(pl_ps_core *core, uint32_t generation)
{
    pl_core_lose_residuals(core);
    pl_core_reset(core, generation);
    for (int32_t i = 0; i < core->member_count; i++)
        if (core->members[i].state == PL_MEMBER_HERE)
            pl_core_send(core, core->members[i].peer,
                         pl_core_stamp(pl_ps_heartbeat_ack_encode(
                                           &(pl_ps_heartbeat_ack) { 0 }),
                                       core->members[i].incarnation),
                         NULL, false);
}

/* The chief determines the job's number.  Tasks that joined a new server before
 * the chief may be left over from another job: they are detected when all
 * rejoin. */
static void claim(pl_ps_core *core, const pl_member *member,
                  const pl_ps_join_text *join)
{
    if (!pl_core_leads(core) || core->claimed || join->job[0] == '\0')
        return;
    uint64_t job = pl_ps_job_number(join->job);
    bool other = core->job != 0 && core->job != job;
    core->job = job;
    core->claimed = member == core->members;
    if (core->claimed && other)
        begin_generation(core, core->generation + 1);
}

static const char *or_empty(const char *text)
{
    return text != NULL ? text : "";
}

/* If this server was stopped, it may read the message of a dead process after
 * that of its successor.  Calendar time may be set back, and times of different
 * boots cannot be compared. */
static bool is_outdated(const pl_member *member, const pl_ps_join_text *join)
{
    if (member->state == PL_MEMBER_ABSENT || member->boot[0] == '\0' ||
        strcmp(member->boot, or_empty(join->boot)) != 0 || join->host == NULL)
        return false;
    size_t length = strlen(join->host);
    return strncmp(member->where, join->host, length) == 0 &&
           member->where[length] == ',' && join->started_ms > 0 &&
           join->started_ms < member->started_ms;
}

static void note_place(pl_member *member, const pl_ps_join_text *join)
{
    member->started_ms = join->started_ms;
    snprintf(member->boot, sizeof member->boot, "%s", or_empty(join->boot));
    if (join->host == NULL)
        return;
    if (!join->has_process)
        snprintf(member->where, sizeof member->where, "%s", join->host);
    else
        snprintf(member->where, sizeof member->where, "%s, process %lld",
                 join->host, (long long)join->process);
}

/* The chief sends its run folder to every server, so that tasks that see the
 * same folder keep their records there. */
static void note_run(pl_ps_core *core, const pl_member *member,
                     const pl_ps_join_text *join)
{
    char *copy;
    if (member != core->members || join->run == NULL ||
        pl_mem_copy_text(&copy, join->run) != PL_OK)
        return;
    pl_mem_free(core->run);
    core->run = copy;
    core->run_job = pl_ps_job_number(join->job);
}

/* A restarted chief tests from the current step on. */
static void note_tests(pl_ps_core *core, const pl_member *member,
                       const pl_ps_join_text *join)
{
    if (member != core->members)
        return;
    core->tests = (pl_due_steps) { 0 };
    if (join->has_tests)
        core->tests = (pl_due_steps) { join->test_count, join->test_each };
    core->test_step = 0;
}

static pl_status welcome_text(const pl_ps_core *core, const char *answer,
                              char **out)
{
    char job[20];
    pl_ps_job_text(core->claimed ? core->job : 0, job);
    pl_ps_welcome_text text = {
        .job = job,
        .shm = answer,
        .run = core->claimed ? core->run : NULL,
    };
    return pl_fields_text(&pl_ps_welcome_fields, &text, 0, out);
}

static void welcome(pl_ps_core *core, pl_member *member,
                    const pl_message *message, const pl_ps_join_text *join)
{
    char answer[PL_OFFER_BYTES] = "", *text;
    if (core->opts.ops->accept != NULL && or_empty(join->shm)[0] != '\0')
        core->opts.ops->accept(core->opts.context, member->peer, join->shm,
                               answer);
    if (welcome_text(core, answer, &text) != PL_OK)
        return; /* no memory: the task repeats its JOIN */
    pl_ps_welcome said = { .number = message->frame.sequence,
                           .step = core->step,
                           .own = member->own,
                           .ready = core->ready };
    pl_core_send_text(
        core, member->peer,
        pl_core_stamp(pl_ps_welcome_encode(&said), member->incarnation), text);
    pl_mem_free(text);
}

/* A server rejoined without parameters: all tasks restart from the last
 * checkpoint. */
static void roll_back(pl_ps_core *core, const pl_member *server)
{
    char name[32];
    if (core->failed)
        return;
    pl_log(PL_LOG_WARN,
           "%s was lost with its partition of the parameters at step %lld: "
           "the job is rolled back to its last checkpoint",
           pl_core_name(core, server, name), (long long)core->step);
    begin_generation(core, core->generation + 1);
}

bool pl_core_said_goodbye(const pl_member *member)
{
    return member->state == PL_MEMBER_LEFT &&
           member->request.kind == PL_REQUEST_BYE && member->sequence > 0;
}

/* Whether the process has sent requests since this JOIN. */
static bool is_late(const pl_ps_core *core, const pl_member *member,
                    uint64_t last)
{
    return pl_core_id(core, member) > core->opts.workers ||
           last < member->sequence;
}

static void void_pushes(pl_ps_core *core, pl_member *member, uint64_t last)
{
    if (core->mode->void_pushes != NULL)
        core->mode->void_pushes(core, member, last);
}

static void catch_up(pl_ps_core *core, pl_member *member)
{
    if (core->mode->catch_up != NULL)
        core->mode->catch_up(core, member);
}

/* Another server: whether server 0 has not yet decided on the gradient. */
static bool is_unsettled(const pl_ps_core *core, const pl_member *member)
{
    return !core->mode->lock_step && !pl_core_leads(core) &&
           (member->fresh || member->held);
}

/* The same process joins again, and not late: its earlier requests, including
 * those in flight, are void.  So the counts of its gradients that it gets now
 * remain true.  A complete gradient still counts. */
static void begin_anew(pl_ps_core *core, pl_member *member, uint64_t last)
{
    if (is_late(core, member, last))
        return;
    catch_up(core, member);
    void_pushes(core, member, last);
    if (member->fresh)
        pl_core_keep(core, member);
    pl_core_forget(core, member);
    member->sequence = last;
    member->stage = PL_STAGE_VOID;
    member->request.kind = PL_REQUEST_NONE;
}

/* Admit the joiner in place of its predecessor. */
static void take_in(pl_ps_core *core, pl_member *member,
                    const pl_message *message, uint64_t last,
                    const pl_ps_join_text *join)
{
    char name[32];
    bool known = is_known(member, message);
    bool late = known && is_late(core, member, last);
    if (known) {
        if (member->state == PL_MEMBER_LOST) /* it was frozen while joining */
            pl_log(PL_LOG_INFO, "%s is back", pl_core_name(core, member, name));
        begin_anew(core, member, last);
    } else {
        if (member->state == PL_MEMBER_HERE)
            pl_core_send_text(core, member->peer,
                              pl_core_stamp(pl_ps_refuse_encode(false, 0),
                                            member->incarnation),
                              PL_REPLACED);
        void_pushes(core, member, 0);
        catch_up(core, member);
        if (member->fresh)
            pl_core_keep(core, member);
        pl_core_forget(core, member);
        if (pl_core_leads(core))
            member->incarnation = ++core->last_incarnation;
        bool returns = pl_core_is_worker(core, member) &&
                       member->state != PL_MEMBER_ABSENT;
        core->rejoins += returns;
        if (returns)
            pl_core_lose_residuals(core);
        member->gone = member->dismissed = false;
        note_place(member, join);
        pl_log(PL_LOG_INFO, "%s joined (%s)", pl_core_name(core, member, name),
               member->where);
    }
    if (member == core->members && !late)
        pl_core_save_abandon(core); /* it may not know of its save */
    if (!pl_core_leads(core))
        member->incarnation = message->frame.incarnation;
    bool server = pl_core_id(core, member) > core->opts.workers;
    bool again = !known && server && member->state != PL_MEMBER_ABSENT;
    member->peer = message->from;
    /* A JOIN may arrive after the goodbye that followed it. */
    if (!known || !pl_core_said_goodbye(member))
        pl_core_set_state(core, member, PL_MEMBER_HERE);
    pl_liveness_reset(&member->life, core->now_ns);
    /* Once the chief has left, everything is saved, until it is back. */
    if (again)
        core->hollow = member;
    if (core->hollow != NULL && core->members[0].state != PL_MEMBER_LEFT)
        roll_back(core, core->hollow);
    /* The chief looks for the last checkpoint: wait until the manifest is
     * written and old checkpoints are removed.  It repeats its JOIN. */
    if (member == core->members && !core->ready &&
        core->save.storing == PL_STORING_MANIFEST)
        return;
    welcome(core, member, message, join);
}

static pl_status join_checked(pl_ps_core *core, const pl_message *message)
{
    pl_ps_join head;
    pl_ps_join_text join;
    pl_json *json;
    pl_member *member = NULL;
    int32_t id;
    if (!pl_ps_join_decode(&head, message))
        return PL_FAIL(PL_FORMAT, "malformed join");
    PL_TRY(pl_ps_join_parse(&join, &json, message));
    pl_status status;
    PL_TRY_OUT(status, pl_ps_join_check(&core->opts, &join, message->who, &id));
    member = &core->members[id];
    PL_TRY_OUT(status,
               check_job(core, &join, member, is_known(member, message)));
    PL_TRY_OUT(status, compare_sizes(core, &join));
    if (join.ask)
        goto out; /* only a query: it does not join yet */
    if (is_outdated(member, &join))
        PL_TRY_OUT(status, PL_FAIL(PL_USAGE, PL_REPLACED));
    /* The task had joined an earlier process of this server, unless this
     * process knows it, as after a lost connection. */
    if (pl_core_leads(core) && status == PL_OK && !is_known(member, message) &&
        message->frame.generation >= core->generation &&
        (!core->initialized || pl_core_id(core, member) > core->opts.workers))
        begin_generation(core, message->frame.generation + 1);
    if (!pl_core_leads(core) &&
        message->frame.incarnation < member->incarnation &&
        message->frame.generation == core->generation)
        status = PL_FAIL(PL_USAGE, PL_REPLACED);
    if (status == PL_OK && is_unsettled(core, member)) {
        pl_core_send_have(core, pl_core_id(core, member)); /* it retries */
    } else if (status == PL_OK) {
        claim(core, member, &join);
        note_run(core, member, &join);
        note_tests(core, member, &join);
        take_in(core, member, message, head.last_request, &join);
    }
out:
    pl_json_free(json);
    return status;
}

void pl_core_on_join(pl_ps_core *core, const pl_message *message)
{
    /* The task repeats its JOIN until we have joined server 0, or a new process
     * of it. */
    if (!pl_core_leads(core) && (core->own_incarnation == 0 ||
                                 (message->frame.incarnation != 0 &&
                                  pl_core_life(message->frame.incarnation) !=
                                      pl_core_life(core->own_incarnation))))
        return;
    if (join_checked(core, message) != PL_OK)
        refuse_join(core, message, pl_error_message());
    else
        pl_core_release(core);
}

void pl_core_is_back(pl_ps_core *core, pl_member *member)
{
    char name[32];
    if (member->state == PL_MEMBER_HERE || pl_core_said_goodbye(member))
        return;
    if (core->told && pl_core_id(core, member) <= core->opts.workers) {
        pl_core_reply_text(core, member, pl_ps_refuse_encode(false, 0),
                           "the job continued without this task and is over");
        return;
    }
    pl_log(PL_LOG_INFO, "%s is back", pl_core_name(core, member, name));
    catch_up(core, member);
    pl_core_set_state(core, member, PL_MEMBER_HERE);
    pl_core_release(core);
}

/* Look at the place where it was last found, then at all members. */
static pl_member *by_incarnation(pl_ps_core *core, uint32_t incarnation)
{
    int32_t *guess = &core->by_incarnation[incarnation & core->guess_mask];
    if (incarnation == 0)
        return NULL;
    if (core->members[*guess].incarnation == incarnation)
        return &core->members[*guess];
    for (int32_t i = 0; i < core->member_count; i++)
        if (core->members[i].incarnation == incarnation) {
            *guess = i;
            return &core->members[i];
        }
    return NULL;
}

void pl_core_on_heartbeat(pl_ps_core *core, const pl_message *message)
{
    const pl_frame *frame = &message->frame;
    pl_ps_heartbeat heartbeat;
    if (!pl_ps_heartbeat_decode(&heartbeat, message))
        return;
    pl_member *member = by_incarnation(core, frame->incarnation);
    if (member == NULL ||
        !speaks_for(&core->opts, message->who, pl_core_id(core, member))) {
        bool unknown = !pl_core_gave(core, frame->incarnation);
        pl_core_send_text(
            core, message->from,
            pl_core_stamp(pl_ps_refuse_encode(unknown, 0), frame->incarnation),
            PL_REPLACED);
        return;
    }
    pl_core_take_usage(member, message);
    if (heartbeat.final && !member->told_final) {
        member->told_final = true;
        pl_core_answer_goodbyes(core);
    }
    bool moved =
        pl_liveness_hear(&member->life, &heartbeat.vital, core->now_ns);
    /* Not if it is alive but stuck. */
    if (moved || heartbeat.vital.phase != PL_PHASE_COMPUTING)
        pl_core_is_back(core, member);
    pl_ps_heartbeat_ack ack = {
        .number = heartbeat.number,
        .failed = core->failed,
        .stopping = core->stopping,
        .final = pl_core_wants_usage(core, member),
        .step = core->step,
        .clock_ns = core->now_ns, /* for the comparison of clocks */
    };
    pl_core_send_text(
        core, message->from,
        pl_core_stamp(pl_ps_heartbeat_ack_encode(&ack), frame->incarnation),
        core->why);
}

bool pl_core_chief_is_done(const pl_ps_core *core)
{
    const pl_member *chief = core->members;
    return chief->state == PL_MEMBER_LEFT &&
           (core->reported || core->dismissed ||
            core->now_ns - chief->life.heard_ns > core->opts.heartbeat_ms * MS);
}

/* Workers stay until the chief has saved the final parameters and has their
 * reports: if a server is lost before, they are needed again. */
void pl_core_answer_goodbyes(pl_ps_core *core)
{
    bool done = pl_core_chief_is_done(core);
    for (int32_t i = 0; i < core->member_count; i++) {
        pl_member *member = &core->members[i];
        bool waits = i == 0                   ? !pl_core_knows_usage(core)
                     : i < core->opts.workers ? !done
                                              : false;
        if (member->state == PL_MEMBER_LEFT &&
            member->stage == PL_STAGE_WAITING &&
            member->request.kind == PL_REQUEST_BYE && !waits) {
            member->dismissed = true;
            pl_core_answer(core, member, 0);
        }
    }
}

void pl_core_reports_heard(pl_ps_core *core)
{
    core->reported = true;
    pl_core_answer_goodbyes(core);
}

void pl_core_on_bye(pl_ps_core *core, pl_member *member,
                    const pl_message *message)
{
    uint32_t bytes = message->frame.payload_bytes;
    char name[32];
    pl_log(PL_LOG_INFO, "%s is done", pl_core_name(core, member, name));
    pl_mem_free(member->report);
    member->report = NULL;
    member->report_bytes = 0;
    if (bytes > 0 && bytes <= REPORT_MOST &&
        PL_NEW(member->report, bytes) == PL_OK) {
        memcpy(member->report, message->payload, bytes);
        member->report_bytes = bytes;
    }
    if (pl_core_id(core, member) == core->opts.workers)
        pl_core_take_usage(member, message);
    pl_core_set_state(core, member, PL_MEMBER_LEFT);
    pl_core_grant(core, member, false);
    member->stage = PL_STAGE_WAITING;
    if (member == core->members) {
        core->reported = false;
        pl_core_ask_usage(core);
    }
    pl_core_answer_goodbyes(core);
    pl_core_release(core);
}
