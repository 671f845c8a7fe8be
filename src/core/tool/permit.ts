// Decides a request for a running node: the layers first, then the answers that people gave to this call. `tool/invoke`
// asks it for tools, `agent/step/call` for models, `agent/step/open-sources` for servers, `delegation/spawn` for
// agents, and `agent/hooks/node-run` for files.
//
// Stays true:
// - `grant/decide` alone decides (I8); this file adds only a person's yes or no to an "ask".
// - A yes holds for the version that the person saw: if a tool changed since, the person is asked again.
// - Needs that cannot be read deny the call; an approval function that throws asks a person.

import { messageOf } from '../base/error.ts'
import { sha256 } from '../base/hash.ts'
import { canonicalJson, type Json, toJson } from '../base/json.ts'
import { SECRET_MARK } from '../base/secrets/shapes.ts'
import { askLayer, type Decision, decide } from '../grant/decide.ts'
import type { Layer } from '../grant/grant.ts'
import { refusalOf } from '../grant/refusal.ts'
import { isHostRequest, isRequest, type Request, readRequest, requestText, unreadable } from '../grant/request.ts'
import type { Conversation, Node } from '../graph/rows.ts'
import type { ToolSchema } from '../model/model.ts'
import { type ApprovalRequest, digestOf } from '../rules/turn/approval-of.ts'
import { isApproved, wasApproved } from '../rules/turn/approve.ts'
import type { Tool } from './tool.ts'

/** The running node on whose behalf a request is decided. */
export interface Requester {
  readonly node: Node
  readonly conversation: Conversation
  readonly layers: readonly Layer[]
}

export type Permission<R extends Request = Request> =
  /** The decided request is the one to execute: its argv, its url. */
  | { readonly verdict: 'allow'; readonly request: R }
  | { readonly verdict: 'deny'; readonly reason: string }
  | { readonly verdict: 'ask'; readonly ask: ApprovalRequest }

/** Decides one request, taking into account what a person has already answered. */
export function permit<R extends Request>(asker: Requester, request: R, input: Json): Permission<R> {
  const decision = decide(asker.layers, request)
  if (decision.verdict === 'allow') return { verdict: 'allow', request }
  const answer = withAnswer(asker, decision, {
    request: requestText(request),
    input,
    required: false,
    ...(request.version === undefined ? {} : { version: request.version }),
  })
  return answer ?? { verdict: 'allow', request }
}

/**
 * Asks a person about a call on behalf of somebody who may only restrict it. Undefined where a person has said yes; a layer that
 * denies whatever would be asked for denies this too.
 */
export function askFor(asker: Requester, about: Omit<ApprovalRequest, 'reason'>, reason: string): Refusal | undefined {
  const answer = withAnswer(asker, { verdict: 'ask', by: null, reason }, about)
  const strict = asker.layers.find(({ neverAsks }) => neverAsks === true)
  if (answer === undefined || strict === undefined) return answer
  return { verdict: 'deny', reason: `${reason}, and ${strict.by} denies what would be asked for` }
}

/** The requests that are decided together, and earlier decisions of people on them. */
export interface Together {
  readonly requests: readonly Request[]
  readonly input: Json
  readonly words: PersonsWords
}

/** The yes of people, for others than the node that asks. A yes to one layer is none to another layer that asks too. */
export interface PersonsWords {
  /** Has a person said yes to this? `keys` name what was asked, one for each layer that asks. */
  isAllowed(ask: ApprovalRequest, keys: readonly string[]): boolean
  /** A person's yes lets it start. */
  heard(keys: readonly string[]): void
}

/**
 * Decides all that one start does: a program or a host, and the secrets that it gets. A refusal names everything that is not
 * allowed, and a person is asked once for all of it. A host that a secret is part of comes after the secret, so that nobody is
 * shown it before. Undefined when it may start.
 */
export function refuseStart(asker: Requester, start: Together): Refusal | undefined {
  const [late, early] = [start.requests.filter(isLate), start.requests.filter((request) => !isLate(request))]
  return refuseTogether(asker, { ...start, requests: early }) ?? refuseTogether(asker, { ...start, requests: late })
}

function isLate(request: Request): boolean {
  return isHostRequest(request) && request.holdsSecret
}

function refuseTogether(asker: Requester, { requests, input, words }: Together): Refusal | undefined {
  const decided = requests.map((request) => ({ request, decision: decide(asker.layers, request) }))
  const denied = decided.filter(({ decision }) => decision.verdict === 'deny')
  if (denied.length > 0) return { verdict: 'deny', reason: withoutHosts(refusalOf(asker.layers, denied), denied) }
  const [main, ...others] = decided.filter(({ decision }) => decision.verdict === 'ask')
  if (main === undefined) return undefined
  const also = others.map(({ request }) => requestText(request))
  const reasons = [main, ...others].map(({ decision }) => decision.reason)
  const about = { request: requestText(main.request), input, required: false, ...versionOf(main.request, also) }
  const answer = withAnswer(asker, { ...main.decision, reason: [...new Set(reasons)].join('; ') }, about)
  const digest = digestOf(about, input)
  const asking = [main, ...others].flatMap(({ request }) => askingLayers(asker.layers, request))
  const keys = [...new Set(asking)].map((layer) => canonicalJson([digest, layer]))
  if (answer !== undefined && (answer.verdict === 'deny' || !words.isAllowed(answer.ask, keys))) return answer
  words.heard(keys)
  return undefined
}

/** Models and logs get refusals. A host that a secret is part of has a mark there. */
function withoutHosts(text: string, denied: readonly { readonly request: Request }[]): string {
  return denied.reduce(
    (left, { request }) => (isLate(request) ? left.replaceAll(request.name, SECRET_MARK) : left),
    text,
  )
}

/** The layers that ask for a request, with the rule of each. */
function askingLayers(layers: readonly Layer[], request: Request): string[] {
  return layers.flatMap((layer) => {
    const { verdict, rule } = askLayer(layer, request)
    return verdict === 'ask' ? [`${layer.by} asks for ${rule}`] : []
  })
}

/** A yes for several requests is a yes for all of them together. The input names them. */
function versionOf({ version }: Request, also: readonly string[]): Pick<ApprovalRequest, 'version'> {
  if (also.length > 0) return { version: sha256(canonicalJson([version ?? null, ...also])) }
  return version === undefined ? {} : { version }
}

type Refusal = Exclude<Permission, { verdict: 'allow' }>

/**
 * Decides everything that a tool call does beside being called: its needs, and the tool's own approval. Undefined when
 * it may run.
 */
export function refuseCall(
  asker: Requester,
  tool: Tool,
  call: { readonly name: string; readonly input: unknown; readonly asked: Json; readonly asks: ApprovalMode },
): Refusal | undefined {
  if (call.asks !== false) {
    const required = call.asks === 'required'
    const decision: Decision = { verdict: 'ask', by: call.name, reason: `${call.name} asks for each call` }
    const answer = withAnswer(asker, decision, { request: `tool:${call.name}`, input: call.asked, required })
    if (answer !== undefined) return answer
  }
  let asked: Refusal | undefined
  for (const [place, request] of needsOf(tool.needs, call.input).entries()) {
    const answer = permit(asker, request, call.asked)
    if (answer.verdict === 'deny' && !(tool.skipsDenied && request.domain.startsWith('file.'))) return answer
    if (answer.verdict === 'ask') asked ??= { ...answer, ask: { ...answer.ask, place } }
  }
  return asked
}

/** Tells everything that code does beside being called, from its input. */
export type Needs = (input: unknown) => readonly (string | Request)[]

/** Decides everything that an agent which is code needs, before its code runs. Undefined when it may run. */
export function refuseCode(asker: Requester, needs: Needs | null, input: Json): Refusal | undefined {
  let asked: Refusal | undefined
  for (const [place, request] of needsOf(needs, input).entries()) {
    const answer = permit(asker, request, input)
    if (answer.verdict === 'deny') return answer
    if (answer.verdict === 'ask') asked ??= { ...answer, ask: { ...answer.ask, place } }
  }
  return asked
}

type ApprovalMode = false | 'ask' | 'required'

/** Tells whether the tool wants a person's approval for a call with this input. If its function fails, it does. */
export async function approvalModeFor({ approval }: Tool, input: unknown, { id }: Node): Promise<ApprovalMode> {
  if (typeof approval !== 'function') return approval ?? false
  try {
    const said = await approval(input, { nodeId: id })
    return said === false || said === 'required' ? said : 'ask'
  } catch {
    return 'ask'
  }
}

/** Adds the schema that changed arguments must fit, unless it is too long to store with each question. */
export function withArgumentsOf(
  ask: ApprovalRequest,
  { inputSchema }: Pick<ToolSchema, 'inputSchema'>,
): ApprovalRequest {
  const schema = toJson(inputSchema)
  return schema.ok && JSON.stringify(schema.value).length <= MOST_SCHEMA ? { ...ask, schema: schema.value } : ask
}

const MOST_SCHEMA = 20_000

/** Undefined when a person has allowed it. */
function withAnswer(
  asker: Requester,
  { verdict, reason }: Decision,
  about: Omit<ApprovalRequest, 'reason'>,
): Refusal | undefined {
  if (verdict === 'deny') return { verdict, reason }
  if (isApproved(asker.node, asker.conversation, about)) return undefined
  const isChanged = wasApproved(asker.conversation, about)
  return {
    verdict: 'ask',
    ask: { ...about, reason: isChanged ? `${reason}, and it has changed since it was allowed` : reason },
  }
}

/** Reads the needs of a call. If the function fails, the call is refused. */
function needsOf(needs: Needs | null, input: unknown): readonly Request[] {
  if (needs === null) return NONE
  try {
    return needs(input).map((need) => (isRequest(need) ? need : readRequest(String(need))))
  } catch (error) {
    return [unreadable(messageOf(error))]
  }
}

const NONE: readonly Request[] = []
