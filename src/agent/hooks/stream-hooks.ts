import { DefinitionError } from '../../base/error.ts'
import { toJson } from '../../base/json.ts'
import type { LiveBody, LiveEvent } from '../../graph/event.ts'
import type { NodeRun } from '../node-run.ts'
import { callHooks } from './call-hooks.ts'
import type { ExtensionCore } from './extension.ts'
import { eventHooks } from './extension-runs.ts'
import type { Given } from './given.ts'
import type { Emission, StreamedAnswer } from './hooks.ts'

type Show = (body: LiveBody) => void

/** What extensions say before the first event of a model call. */
export function streamStart(run: NodeRun, show: Show): void | Promise<void> {
  return callHooks<Emission>(run, {
    hook: 'onStreamStart',
    call: ({ hooks }, context) => hooks?.onStreamStart?.(context),
    use: (emission, extension) => show(emitted(extension, emission)),
  })
}

/** And after the last. */
export function streamEnd(run: NodeRun, answer: StreamedAnswer, show: Show): void | Promise<void> {
  return callHooks<Emission>(run, {
    hook: 'onStreamEnd',
    call: ({ hooks }, context) => hooks?.onStreamEnd?.(answer, context),
    use: (emission, extension) => show(emitted(extension, emission)),
  })
}

/** And after one of them. */
export function hookedEvent(run: NodeRun, body: LiveBody, show: Show): void | Promise<void> {
  const { node, conversation, home } = run
  const event: LiveEvent = {
    seq: 0,
    at: home.ledger.clock.now(),
    conversationId: node.conversationId,
    turnId: node.turnId,
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

/** What several hooks gave, as one. */
function joined(given: readonly unknown[]): Given<Emission> {
  return given.length === 1 ? (given[0] as Given<Emission>) : joinedLater(given)
}

async function* joinedLater(given: readonly unknown[]): AsyncGenerator<Emission> {
  for (const one of given) {
    const settled: unknown = await one
    if (typeof settled !== 'object' || settled === null) continue
    if (Symbol.asyncIterator in settled || Symbol.iterator in settled) yield* settled as Iterable<Emission>
    else yield settled as Emission
  }
}

/** A hook that only looks at events may give whatever it likes. */
function isEmission(given: unknown): given is Emission {
  return typeof given === 'object' && given !== null && typeof Reflect.get(given, 'name') === 'string'
}

function emitted({ name: extension }: ExtensionCore, emission: Emission): LiveBody {
  if (!isEmission(emission)) throw new DefinitionError('definition', 'it gave what is no event: give { name, data }.')
  const data = toJson(emission.data ?? null)
  if (!data.ok)
    throw new DefinitionError('definition', `the data of its event "${emission.name}" is not JSON: ${data.error}`)
  return { type: 'extension', extension, name: emission.name, data: data.value }
}
