// Operations of what waits for a person: lists, answers, and words on calls whose effect is uncertain.
//
// Stays true:
// - `by` is the principal's id, and never comes from a caller.
// - The hash of what the principal saw goes with its word, and the word holds for nothing else.

import { toJson } from '../base/json.ts'
import { after } from '../base/maybe.ts'
import { readOptions, text } from '../base/options.ts'
import type { InboxItem, InboxQuery } from '../conversation/inbox/inbox.ts'
import type { ApprovalsQuery, PendingApproval, PendingQuestion, QuestionsQuery } from '../conversation/inbox/pending.ts'
import type { SettleDecision, SettleRequest } from '../conversation/inbox/settle.ts'
import { leaseTime } from '../engine/lease.ts'
import { requireEdit } from '../grant/principal.ts'
import type { Draft } from '../graph/draft.ts'
import type { Id, Node } from '../graph/rows.ts'
import type { SettledCall } from '../rules/history/settle-call.ts'
import { look } from '../store/look.ts'
import { type Page, type PartQuery, pagePart, upTo } from './form/page.ts'
import {
  type ApprovalDecision,
  type CallResult,
  type QuestionAnswer,
  readWord,
  type ScopedAnswer,
  type ScopedSettleDecision,
} from './form/words.ts'
import { requireApprover, requireExecutor } from './look/asked-request.ts'
import { inNode } from './look/run-look.ts'
import { byExpiry, bySince, SeenLists } from './look/seen-lists.ts'
import { operation } from './operation.ts'
import type { Admitted, Asking, Operating, OperatingRules } from './port.ts'
import { bodySchema, FLAG, FROM, LIMIT, TEXT } from './schemas.ts'

const ANSWERED = { 409: 'Somebody answered before, or it asks for something else now.' }

/** The hash of what was seen, as the lists of what waits, the events and the webhooks show it. */
const SEEN = {
  type: 'string',
  minLength: 16,
  maxLength: 64,
  description: 'The hash of what you saw, all 64 hex digits. It answers nothing else.',
}
const HASH = 'b7f9b1d0882a4808b162eb85adf4e80027422d515630769e73c83fd20984ebf4'

type AnyWord = ApprovalDecision | QuestionAnswer | CallResult

export const INBOX = {
  /** Everything in this store that needs a person, the most urgent first. */
  inbox: operation({
    summary: 'Everything that needs a person: approvals, questions, uncertain calls, failed and stalled runs.',
    scope: 'read',
    http: 'GET /v1/inbox',
    query: { owner: { type: 'string', description: 'Only what belongs to this owner.' }, limit: LIMIT, from: FROM },
    gives: ['Inbox', 'The items, the most urgent first.'],
    run: (on, query: InboxQuery = {}) => inbox(on, query),
    as: async ({ on, principal }, query: InboxQuery = {}) =>
      new SeenLists(principal).filtered(query, (owned) => inbox(on, owned), bySince),
    ask: (query: PartQuery & Pick<InboxQuery, 'owner'>) => upTo(query),
    wire: (found: readonly InboxItem[], query: PartQuery): Page<'items', InboxItem> => pagePart(found, query),
  }),

  /** A person's word on a call that is uncertain. Gives the run that goes on from there. */
  settle: operation({
    summary: 'Says what became of a call whose process was lost: it happened, it did not, or leave it.',
    scope: 'approve',
    of: 'node',
    http: 'POST /v1/uncertain/{nodeId}',
    beginsRun: true,
    body: bodySchema(
      {
        happened: { ...FLAG, description: 'True: it did, with `result`. False: it runs again.' },
        result: { description: 'The result that the agent reads.' },
        leave: { const: true, description: 'Leave it as it is.' },
        seen: SEEN,
      },
      ['seen'],
    ),
    gives: ['SettledCall', 'The run that goes on from there.'],
    example: { body: { leave: true, seen: HASH } },
    run: async (on, nodeId: Id, word: SettleDecision, options: { readonly by?: string } = {}): Promise<SettledCall> => {
      const { by = 'user' } = readOptions('settle(nodeId, word, options)', options, { by: text })
      return settle(on, nodeId, { word, by, caller: [] })
    },
    as: async (who, nodeId: Id, word: ScopedSettleDecision): Promise<SettledCall> => {
      const said = { ...word }
      const seen = await requireApproval(who, nodeId, { seen: said.seen, isNeeded: true })
      if (!('leave' in said)) await who.requireDay(who.root.owner)
      return settle(who.on, nodeId, { word: { ...said, seen }, by: who.principal.id, caller: who.bound })
    },
  }),

  /** The approvals that wait for a person, in runs of all depths of this store, whichever process runs them. */
  approvals: operation({
    summary: 'The requests that wait for a person, those that expire first before the others.',
    scope: 'approve',
    http: 'GET /v1/approvals',
    query: { limit: LIMIT, from: FROM },
    gives: ['Approvals', 'The requests.'],
    run: (on, query: ApprovalsQuery = {}) => approvals(on, query),
    as: async (who, query: ApprovalsQuery = {}) => {
      if (query.runId !== undefined) await who.enter('approve', 'run', query.runId)
      const seen = new SeenLists(who.principal)
      return seen.filtered(query, (owned: ApprovalsQuery) => approvals(who.on, owned), byExpiry)
    },
    ask: (query: PartQuery) => upTo(query),
    wire: (found: readonly PendingApproval[], query: PartQuery): Page<'approvals', PendingApproval> => {
      const { items: approvals, next } = pagePart(found, query)
      return { approvals, next }
    },
  }),

  /** A person's word on a request, as `approvals` showed it (`seen`). The server names who says it. */
  approve: operation({
    summary: 'Allows or denies a request. The first answer counts.',
    description:
      '`seen` is the hash that the list showed: an answer to another request than the one you saw is refused. A yes needs it; a no may go without.',
    scope: 'approve',
    of: 'node',
    http: 'POST /v1/approvals/{nodeId}',
    body: bodySchema(
      {
        allow: FLAG,
        seen: SEEN,
        edit: { description: 'Allow it with these arguments instead.' },
        always: { ...FLAG, description: 'For the rest of the conversation. Needs the scope `approve:always`.' },
        reason: { ...TEXT, description: 'What the model reads when you deny it.' },
      },
      ['allow'],
    ),
    else: ANSWERED,
    example: { body: { allow: true, seen: HASH } },
    serve: (who, nodeId: Id, word: Omit<ApprovalDecision, 'by' | 'seen'> & { readonly seen: string }) =>
      sayAs(who, nodeId, word),
  }),

  /** The questions of agents that wait for a person, whichever process runs them: `answer(nodeId, { text })` answers one. */
  questions: operation({
    summary: 'The questions of agents that wait for a person.',
    scope: 'approve',
    http: 'GET /v1/questions',
    query: {
      limit: LIMIT,
      from: FROM,
      outside: { type: 'boolean', description: 'Also calls that wait for who executes them.' },
    },
    gives: ['Questions', 'The questions.'],
    run: (on, query: QuestionsQuery = {}) => questions(on, query),
    as: async (who, query: QuestionsQuery = {}) => {
      if (query.runId !== undefined) await who.enter('approve', 'run', query.runId)
      const seen = new SeenLists(who.principal)
      return seen.filtered(query, (owned: QuestionsQuery) => questions(who.on, owned), byExpiry)
    },
    ask: (query: PartQuery & Pick<QuestionsQuery, 'outside'>) => upTo(query),
    wire: (found: readonly PendingQuestion[], query: PartQuery): Page<'questions', PendingQuestion> => {
      const { items: questions, next } = pagePart(found, query)
      return { questions, next }
    },
  }),

  /** A person's answer to a question. */
  reply: operation({
    summary: 'Answers a question. The first answer counts.',
    scope: 'approve',
    of: 'node',
    http: 'POST /v1/questions/{nodeId}',
    body: bodySchema({ text: { ...TEXT, minLength: 1 }, seen: SEEN }, ['text']),
    else: ANSWERED,
    example: { body: { text: 'Forty-two.' } },
    serve: (who, nodeId: Id, word: Omit<QuestionAnswer, 'by'>) => sayAs(who, nodeId, word),
  }),

  /** The result of a call that you have executed, as its event showed it (`seen`): `tool({ execute: 'outside' })`. */
  giveResult: operation({
    summary: 'Gives the result of a call that you have executed. The first one counts.',
    description:
      'For tools with `execute: "outside"`. Its events name the call: `tool-call`, then `question` with `to: "outside"` and `seen`. The owner of the conversation executes it, or the principal that the tool names.',
    scope: 'start',
    of: 'node',
    http: 'POST /v1/calls/{nodeId}/result',
    body: bodySchema(
      {
        result: { description: 'The result, as the tool promises it.' },
        isError: { ...FLAG, description: 'It failed.' },
        seen: SEEN,
      },
      ['result', 'seen'],
    ),
    else: ANSWERED,
    example: { body: { result: 'done', seen: HASH } },
    serve: (who, nodeId: Id, word: Omit<CallResult, 'by' | 'seen'> & { readonly seen: string }) =>
      sayAs(who, nodeId, word),
  }),

  /**
   * A person's word on what awaits approval, the answer to a question, or the result of a call that was executed outside. Once: a
   * second word is refused.
   */
  answer: operation({
    scope: 'any',
    run: async (on, nodeId: Id, word: AnyWord): Promise<void> => (await checked(on, nodeId, word))(),
    as: async (who, nodeId: Id, word: ScopedAnswer): Promise<void> => (await enterAndCheck(who, nodeId, word))(),
  }),

  /** Checks a word as `answer` does. Gives what says it: whoever has several checks all of them before the first is said. */
  checkAnswer: operation({
    scope: 'any',
    run: (on, nodeId: Id, word: AnyWord) => checked(on, nodeId, word),
    as: (who, nodeId: Id, word: ScopedAnswer) => enterAndCheck(who, nodeId, word),
  }),
} as const

async function inbox({ store, ledger }: Operating, query: InboxQuery): Promise<InboxItem[]> {
  const [{ inboxOf }, now] = [await import('../conversation/inbox/inbox.ts'), await leaseTime(ledger)]
  return inboxOf(store, now, query)
}

async function approvals({ store }: Operating, query: ApprovalsQuery): Promise<PendingApproval[]> {
  const { pendingApprovals } = await import('../conversation/inbox/pending.ts')
  return pendingApprovals(store, query)
}

async function questions({ store }: Operating, query: QuestionsQuery): Promise<PendingQuestion[]> {
  const { pendingQuestions } = await import('../conversation/inbox/pending.ts')
  return pendingQuestions(store, query)
}

async function settle(
  on: Operating,
  nodeId: Id,
  { word, ...who }: Omit<SettleRequest, 'word'> & { readonly word: SettleDecision },
): Promise<SettledCall> {
  const given = toJson(word)
  const [{ settleCall }] = await Promise.all([import('../conversation/inbox/settle.ts'), on.rules()])
  const done = settleCall(on, nodeId, { ...who, word: given.ok ? given.value : null })
  await on.saying(done.then(() => undefined))
  return done
}

type Say = () => Promise<void>

/** Checks a word, and gives what says it. */
async function checked(on: Operating, nodeId: Id, word: AnyWord): Promise<Say> {
  if (typeof word === 'object' && word !== null && 'result' in word) return checkedResult(on, nodeId, word)
  const given = readWord(word)
  const node = await inNode(on.store, nodeId, (_, found) => found)
  if ('edit' in given && given.edit !== undefined) {
    const { checkEdit } = await import('../conversation/inbox/pending.ts')
    await checkEdit(node, given.edit)
  }
  return sayer(on, node, ({ planApproval, planReply }, draft) =>
    'text' in given ? planReply(draft, nodeId, given) : planApproval(draft, nodeId, given),
  )
}

async function checkedResult(on: Operating, nodeId: Id, word: CallResult): Promise<Say> {
  const { readResult } = await import('../conversation/inbox/outside-result.ts')
  const given = readResult(word)
  const { node, schema } = await inNode(on.store, nodeId, (tree, row) => ({
    node: row,
    schema: on.resultSchemaOf(tree, row),
  }))
  const result = await given(node, schema)
  return sayer(on, node, ({ planOutsideResult }, draft) => planOutsideResult(draft, nodeId, result))
}

function sayer(
  { ledger, rules, saying }: Operating,
  { rootId }: Node,
  plan: (rules: OperatingRules, draft: Draft) => void,
): Say {
  return () =>
    saying(after(rules(), (code) => ledger.commit({ kind: 'answer', rootId, plan: (draft) => plan(code, draft) })))
}

/** Checks a word of a principal that says to what it answers only with the word itself. */
async function enterAndCheck(who: Asking, nodeId: Id, word: ScopedAnswer): Promise<Say> {
  const said = { ...word }
  const root = await who.enter('result' in said ? 'start' : 'approve', 'node', nodeId)
  return checkedAs({ ...who, root }, nodeId, said)
}

async function sayAs(who: Admitted, nodeId: Id, word: ScopedAnswer): Promise<void> {
  const say = await checkedAs(who, nodeId, word)
  await say()
}

async function checkedAs(who: Admitted, nodeId: Id, word: ScopedAnswer): Promise<Say> {
  const said = { ...word, by: who.principal.id }
  if ('result' in said) {
    const { id, owner } = who.root
    const about = { owner, principal: who.principal, seen: said.seen, isNeeded: true }
    const seen = await look(who.on.store, id, (tree) => requireExecutor(tree, nodeId, about))
    return checked(who.on, nodeId, { ...said, seen })
  }
  // Words for a question allow nothing: the rules take them for questions only.
  if ('text' in said) return checked(who.on, nodeId, said)
  if ('always' in said && said.always === true) who.require('approve:always')
  const shown = { seen: 'seen' in said ? said.seen : undefined, isNeeded: said.allow !== false }
  const seen = await requireApproval(who, nodeId, shown)
  if ('edit' in said && said.edit !== undefined) requireEdit(who.principal)
  return checked(who.on, nodeId, { ...said, seen })
}

/** The hash that the principal saw, and whether the word counts only for that. */
interface Shown {
  readonly seen: string | undefined
  readonly isNeeded: boolean
}

/** Gives the hash of what the principal may answer. */
async function requireApproval({ on, principal, root }: Admitted, nodeId: Id, shown: Shown): Promise<string> {
  const about = { owner: root.owner, principal, ...shown }
  return look(on.store, root.id, (tree) => requireApprover(tree, nodeId, about))
}
