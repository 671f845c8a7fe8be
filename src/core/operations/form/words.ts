// The words of people on calls and questions that wait for them, and how they are read.

import { InputError } from '../../base/error.ts'
import { type Json, toJson } from '../../base/json.ts'
import { anything, flag, type OptionRules, readOptions, text } from '../../base/options.ts'
import type { SettleDecision } from '../../conversation/inbox/settle.ts'
import type { Reply } from '../../rules/delegation/question.ts'
import type { ApprovalAnswer } from '../../rules/turn/approve.ts'

/** A person's answer to a node that awaits approval. */
export interface ApprovalDecision {
  /** Whether the request goes ahead. */
  readonly allow: boolean
  /** Who says so: recorded. Default `user`. */
  readonly by?: string
  /** The reason that the model reads when you deny it. */
  readonly reason?: string
  /** Allow the same request for the rest of its conversation. */
  readonly always?: boolean
  /** Allow it with these arguments instead. */
  readonly edit?: Json
  /** Answers only the request that was listed with this `seen`. Without it: whatever the node asks for now. */
  readonly seen?: string
}

/** An answer to a question that an agent has asked. */
export interface QuestionAnswer {
  /** The answer. */
  readonly text: string
  /** Who says so: recorded. Default `user`. */
  readonly by?: string
  /** Answers only the question that was listed with this `seen`. Without it: whatever the node asks. */
  readonly seen?: string
}

/** The result of a call that was executed outside: `tool({ execute: 'outside' })`. */
export interface CallResult {
  /** The result, as JSON. It must fit the `output` of the tool. */
  readonly result: Json
  /** True: it failed, and the result says why. */
  readonly isError?: boolean
  /** Who says so: recorded. Default `user`. */
  readonly by?: string
  /** Is the result of the call that was listed with this `seen`, and of no other. Without it: of whatever the node calls. */
  readonly seen?: string
}

/**
 * A word of a principal: who says it is known, and what the principal saw goes with it. A no and the answer to a question may go
 * without `seen`: they allow nothing.
 */
export type ScopedAnswer =
  | (Omit<ApprovalDecision, 'by' | 'seen'> & Seen)
  | (Pick<ApprovalDecision, 'reason'> & { readonly allow: false })
  | Omit<QuestionAnswer, 'by'>
  | (Omit<CallResult, 'by' | 'seen'> & Seen)

/** A word of a principal on a call whose effect may or may not have happened. */
export type ScopedSettleDecision = SettleDecision & Seen

interface Seen {
  /** The hash that the request was shown with: 64 hex digits. */
  readonly seen: string
}

/** Only an object with `text` or `allow` is a word: true, "yes" or nothing at all is none. */
export function readWord(given: ApprovalDecision | QuestionAnswer): Reply | ApprovalAnswer {
  if (typeof given !== 'object' || given === null) {
    const message = 'answer(nodeId, word) takes { allow: true } or { allow: false }, or { text } to answer a question.'
    throw new InputError('invalid_input', message)
  }
  return 'text' in given ? readReply(given) : readAnswer(given)
}

const REPLY: OptionRules<QuestionAnswer> = { text: anything, by: text, seen: text }

/** A person's answer to a question: words, and who said them. */
function readReply(given: QuestionAnswer): Reply {
  const { text: words, by = 'user', seen } = readOptions('answer(nodeId, { text })', given, REPLY)
  if (typeof words !== 'string' || words.trim() === '') {
    throw new InputError('invalid_input', 'answer(nodeId, { text }): the answer is a text that is not empty.')
  }
  return { text: words, by, ...(seen === undefined ? {} : { seen }) }
}

const WORD: OptionRules<ApprovalDecision> = {
  allow: anything,
  by: text,
  reason: text,
  always: flag,
  edit: anything,
  seen: text,
}

/** Only `true` allows: whatever else stands there, by mistake or from a form, is no yes. */
function readAnswer(word: ApprovalDecision): ApprovalAnswer {
  const { allow, by = 'user', reason, always, edit, seen } = readOptions('answer(nodeId, { allow })', word, WORD)
  if (typeof allow !== 'boolean') throw new InputError('invalid_input', 'answer(nodeId, { allow }): true or false.')
  const only = seen === undefined ? {} : { seen }
  const given = { allowed: allow, by, reason: reason ?? null, always: always === true, ...only }
  if (edit === undefined) return given
  if (!allow)
    throw new InputError('invalid_input', 'answer(nodeId, { edit }): only what you allow runs with new arguments.')
  const json = toJson(edit)
  if (!json.ok) throw new InputError('invalid_input', `answer(nodeId, { edit }): it is not JSON. ${json.error}`)
  return { ...given, edit: json.value }
}
