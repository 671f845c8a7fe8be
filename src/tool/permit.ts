import { messageOf } from '../base/error.ts'
import type { Json } from '../base/json.ts'
import { type Decision, decide } from '../grant/decide.ts'
import type { Layer } from '../grant/grant.ts'
import { splitRule } from '../grant/rule.ts'
import type { Conversation, Node } from '../graph/rows.ts'
import { type Ask, isApproved, wasApproved } from '../graph/turn/approve.ts'
import type { Tool } from './tool.ts'

/** Whose request it is. */
export interface Asker {
  readonly node: Node
  readonly conversation: Conversation
  readonly layers: readonly Layer[]
}

export type Permission =
  | { readonly verdict: 'allow' }
  | { readonly verdict: 'deny'; readonly reason: string }
  | { readonly verdict: 'ask'; readonly ask: Ask }

const ALLOWED: Permission = { verdict: 'allow' }

/** One request decided, with what a person has already said to it. */
export function permit(asker: Asker, { domain, name, version }: Request, input: Json): Permission {
  const decision = decide(asker.layers, domain, name)
  if (decision.verdict === 'allow') return ALLOWED
  return withAnswer(asker, decision, { request: `${domain}:${name}`, input, required: false, ...versioned(version) })
}

function versioned(version: string | undefined): Pick<Ask, 'version'> {
  return version === undefined ? {} : { version }
}

export interface Request {
  readonly domain: string
  readonly name: string
  /** Of what is asked for, where it may change. */
  readonly version?: string | undefined
}

/** All that a call of a tool does beside being called: its needs, and a person's word where the tool wants it. */
export function permitCall(asker: Asker, tool: Tool, call: { name: string; input: unknown; asked: Json }): Permission {
  const required = tool.approval === 'required'
  if (tool.approval !== null) {
    const decision: Decision = { verdict: 'ask', by: call.name, reason: `${call.name} asks for each call` }
    const answer = withAnswer(asker, decision, { request: `tool:${call.name}`, input: call.asked, required })
    if (answer.verdict !== 'allow') return answer
  }
  let asked: Permission = ALLOWED
  for (const request of needsOf(tool, call.input)) {
    const { domain, pattern } = splitRule(request)
    const answer = permit(asker, { domain, name: pattern }, call.asked)
    if (answer.verdict === 'deny' && !(tool.skipsDenied && domain.startsWith('file.'))) return answer
    if (answer.verdict === 'ask' && asked.verdict === 'allow') asked = answer
  }
  return asked
}

function withAnswer(asker: Asker, { verdict, reason }: Decision, about: Omit<Ask, 'reason'>): Permission {
  if (verdict === 'allow') return ALLOWED
  if (verdict === 'deny') return { verdict, reason }
  if (isApproved(asker.node, asker.conversation, about)) return ALLOWED
  const isChanged = wasApproved(asker.conversation, about)
  return {
    verdict,
    ask: { ...about, reason: isChanged ? `${reason}, and it has changed since it was allowed` : reason },
  }
}

/** Needs that cannot be told are not met. */
function needsOf(tool: Tool, input: unknown): readonly string[] {
  if (tool.needs === null) return NONE
  try {
    return tool.needs(input).map(String)
  } catch (error) {
    return [`needs:${messageOf(error)}`]
  }
}

const NONE: readonly string[] = []
