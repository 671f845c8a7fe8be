import { DefinitionError, messageOf } from '../../base/error.ts'
import { toJson } from '../../base/json.ts'
import { NO_USAGE } from '../../graph/content.ts'
import type { LiveBody, LiveEvent } from '../../graph/event.ts'
import type { ModelRequest, Part } from '../../model/model.ts'
import type { ExtensionCore } from '../definition/extension.ts'
import {
  type Emission,
  type HookContext,
  type HookName,
  type HookResult,
  type ModelAnswer,
  type NextModel,
  type RequestChange,
  type StreamedAnswer,
  useEach,
} from '../definition/hooks.ts'
import { eventHooks, type HookPlace } from './extension-runs.ts'
import type { NodeRun } from './node-run.ts'

const CHANGEABLE = ['messages', 'tools', 'settings', 'outputSchema']

/** Applies the `onRequest` hooks: each sees the result of those before it. */
export async function applyRequestHooks(run: NodeRun, request: ModelRequest): Promise<ModelRequest> {
  let hooked = request
  await callHooks<RequestChange>(run, {
    hook: 'onRequest',
    call: ({ hooks }, context) => hooks?.onRequest?.(hooked, context),
    use: (change) => {
      checkChange(change)
      hooked = { ...hooked, ...change }
    },
  })
  return hooked
}

function checkChange(change: unknown): void {
  const isObject = typeof change === 'object' && change !== null
  const unknown = isObject ? Object.keys(change).find((key) => !CHANGEABLE.includes(key)) : ''
  if (unknown !== undefined) {
    const what = unknown === '' ? `gave ${JSON.stringify(change)}` : `gave "${unknown}"`
    throw new DefinitionError('definition', `onRequest ${what}: it may give { ${CHANGEABLE.join(', ')} }.`)
  }
  const { messages, tools } = change as RequestChange
  if ((messages !== undefined && !Array.isArray(messages)) || (tools !== undefined && !Array.isArray(tools))) {
    throw new DefinitionError('definition', 'onRequest: messages and tools are lists.')
  }
  const odd = messages?.findIndex((message: unknown) => !isMessage(message)) ?? -1
  if (odd !== -1)
    throw new DefinitionError('definition', `onRequest: messages[${odd}] is not a message: { role, content }.`)
}

const ROLES: readonly unknown[] = ['system', 'user', 'assistant', 'tool']

function isMessage(message: unknown): boolean {
  if (typeof message !== 'object' || message === null) return false
  const { role, content } = message as { readonly role?: unknown; readonly content?: unknown }
  return ROLES.includes(role) && (typeof content === 'string' || Array.isArray(content))
}

type Show = (body: LiveBody) => void

/** Emits the hooks' events before the first event of a model call. */
export function emitStreamStart(run: NodeRun, show: Show): void | Promise<void> {
  return callHooks<Emission>(run, {
    hook: 'onStreamStart',
    call: ({ hooks }, context) => hooks?.onStreamStart?.(context),
    use: (emission, extension) => show(emitted(extension, emission)),
  })
}

/** Emits the hooks' events after the last event of a model call. */
export function emitStreamEnd(run: NodeRun, answer: StreamedAnswer, show: Show): void | Promise<void> {
  return callHooks<Emission>(run, {
    hook: 'onStreamEnd',
    call: ({ hooks }, context) => hooks?.onStreamEnd?.(answer, context),
    use: (emission, extension) => show(emitted(extension, emission)),
  })
}

/** Emits the hooks' events after one live event. */
export function emitAfterEvent(run: NodeRun, body: LiveBody, show: Show): void | Promise<void> {
  const { node, conversation, home } = run
  const event: LiveEvent = {
    seq: 0,
    at: home.ledger.clock.now(),
    conversationId: node.conversationId,
    runId: node.turnId,
    nodeId: node.id,
    path: conversation.path,
    parentId: conversation.parentTurnId,
    ...body,
  }
  return callHooks<Emission>(run, {
    hook: 'onEvent',
    call: (extension, context) => joined(eventHooks(extension, event).map((hook) => hook(event, context))),
    use: (emission, extension) => {
      if (isEmission(emission)) show(emitted(extension, emission))
    },
  })
}

/** Joins the results of several hooks. */
function joined(given: readonly unknown[]): HookResult<Emission> {
  return given.length === 1 ? (given[0] as HookResult<Emission>) : joinedLater(given)
}

async function* joinedLater(given: readonly unknown[]): AsyncGenerator<Emission> {
  for (const one of given) {
    const settled: unknown = await one
    if (typeof settled !== 'object' || settled === null) continue
    if (Symbol.asyncIterator in settled || Symbol.iterator in settled) yield* settled as Iterable<Emission>
    else yield settled as Emission
  }
}

/** Ignores other results, because a hook that only watches events may return anything. */
function isEmission(given: unknown): given is Emission {
  return typeof given === 'object' && given !== null && typeof Reflect.get(given, 'name') === 'string'
}

function emitted({ name: extension }: ExtensionCore, emission: Emission): LiveBody {
  if (!isEmission(emission))
    throw new DefinitionError('definition', 'the hook returned something that is not an event. Return { name, data }.')
  const data = toJson(emission.data ?? null)
  if (!data.ok)
    throw new DefinitionError('definition', `the data of its event "${emission.name}" is not JSON: ${data.error}`)
  return { type: 'extension', extension, name: emission.name, data: data.value }
}

/** The model with every `wrapModel` around it, the first one outermost. */
export function wrapModel(run: NodeRun, model: NextModel): NextModel {
  const wrappers = run.hooks?.of('wrapModel') ?? []
  return wrappers.reduceRight<NextModel>((next, extension) => wrapped(run, extension, next), model)
}

function wrapped(run: NodeRun, extension: ExtensionCore, next: NextModel): NextModel {
  return (request) => answered(run, extension, { request, next })
}

interface Wrapping {
  readonly request: ModelRequest
  readonly next: NextModel
}

/** Leaves out a wrapper that fails before it has yielded anything; errors of the model itself stay the model's. */
async function* answered(run: NodeRun, extension: ExtensionCore, { request, next }: Wrapping): AsyncGenerator<Part> {
  const model: AskedModel = { isAsked: false, thrown: new Set() }
  let hasSaid = false
  try {
    const given = await extension.hooks?.wrapModel?.(request, remembering(next, model), contextFor(run, extension))
    for await (const part of partsOf(given)) {
      hasSaid = true
      yield part
    }
    if (!hasSaid && !model.isAsked) throw noAnswer('no parts')
    return
  } catch (error) {
    if (model.thrown.has(error) || run.work.stopCause !== null) throw error
    await hookFailed(run, extension, { hook: 'wrapModel', error })
    if (hasSaid) throw new ExtensionFailed(extension, 'wrapModel', error)
  }
  yield* next(request)
}

interface AskedModel {
  isAsked: boolean
  readonly thrown: Set<unknown>
}

function remembering(next: NextModel, model: AskedModel): NextModel {
  return async function* (request) {
    model.isAsked = true
    try {
      yield* next(request)
    } catch (error) {
      model.thrown.add(error)
      throw error
    }
  }
}

async function* partsOf(said: Awaited<ModelAnswer> | undefined): AsyncGenerator<Part> {
  if (typeof said === 'string') {
    yield { type: 'text-delta', text: said }
    yield { type: 'finish', reason: 'stop', usage: NO_USAGE }
    return
  }
  if (typeof said !== 'object' || said === null) throw noAnswer(typeof said)
  const parts = Symbol.asyncIterator in said || Symbol.iterator in said ? said : [said]
  for await (const part of parts) yield checkedPart(part)
}

function checkedPart(part: Part): Part {
  if (typeof part !== 'object' || part === null) throw noAnswer(`a part that is ${typeof part}`)
  if (typeof part.type !== 'string') throw noAnswer(`{ ${Object.keys(part).slice(0, MOST_KEYS).join(', ')} }`)
  return part
}

const MOST_KEYS = 5

function noAnswer(given: string): Error {
  return new Error(`wrapModel gave no answer but ${given}: return next(request), a text or parts`)
}

/** An extension with `onError: 'fail'` has failed. */
export class ExtensionFailed extends Error {
  constructor({ name }: ExtensionCore, hook: HookName, cause: unknown) {
    super(`The extension "${name}" failed in ${hook}: ${messageOf(cause)}`, { cause })
  }
}

export function placeOf({ tree, node, work }: NodeRun): HookPlace {
  return { tree, runId: node.turnId, nodeId: node.id, purpose: node.purpose, work }
}

function contextFor(run: NodeRun, extension: ExtensionCore): HookContext {
  return run.home.live.extensions.contextOf(extension, placeOf(run))
}

export interface HookCall<T> {
  readonly hook: HookName
  call(extension: ExtensionCore, context: HookContext): HookResult<T>
  use(value: T, extension: ExtensionCore): void
}

/**
 * Calls a hook of every extension that has it, one after the other, and uses each result; synchronously where nothing
 * is async. Reports an error, and stops it there unless its extension wants the run to fail.
 */
export function callHooks<T>(run: NodeRun, { hook, call, use }: HookCall<T>): void | Promise<void> {
  const extensions = run.hooks?.of(hook) ?? []
  for (const [at, extension] of extensions.entries()) {
    const called = callOne(run, extension, { hook, call, use })
    if (called !== undefined) return callRest(run, { called, rest: extensions.slice(at + 1) }, { hook, call, use })
  }
  return undefined
}

async function callRest<T>(
  run: NodeRun,
  { called, rest }: { readonly called: Promise<void>; readonly rest: readonly ExtensionCore[] },
  hookCall: HookCall<T>,
): Promise<void> {
  await called
  for (const extension of rest) await callOne(run, extension, hookCall)
}

function callOne<T>(run: NodeRun, extension: ExtensionCore, { hook, call, use }: HookCall<T>): void | Promise<void> {
  try {
    const given = useEach(call(extension, contextFor(run, extension)), (value) => use(value, extension))
    return given === undefined
      ? undefined
      : given.catch((error: unknown) => hookFailed(run, extension, { hook, error }))
  } catch (error) {
    return hookFailed(run, extension, { hook, error })
  }
}

/** Reports the error; throws where the extension wants the run to fail. */
async function hookFailed(
  run: NodeRun,
  extension: ExtensionCore,
  { hook, error }: { readonly hook: HookName; readonly error: unknown },
): Promise<void> {
  await run.home.live.extensions.report(extension, { hook, error }, placeOf(run))
  if (extension.onError === 'fail') throw new ExtensionFailed(extension, hook, error)
}
