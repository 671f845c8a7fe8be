// Operations as rows of the route table.
//
// Owns:      how a request becomes the call of an operation, and its answer a response.
// Called by: the files of `server/routes`, one subject at a time.
// Must stay true: an operation is reached through the runtime of who asks, which checks it (I12). Those of the server itself are
//   asked for their scopes here.

import type { ServerCaller } from '../../../core/operations/form/server-port.ts'
import type { OperationName } from '../../../core/operations/load.ts'
import type { Method, Operation } from '../../../core/operations/operation.ts'
import { OF_CONVERSATION, OF_SERVER, OPERATIONS } from '../../../core/operations/table.ts'
import { argumentsOf } from '../../../core/operations/wire/request.ts'
import type { Answers } from '../../client/index.ts'
import { type Answer, type AnswerForm, json, NOTHING, type Route, type RouteCall, takesBody } from './route.ts'

/** Routes that stand behind the one of an operation, by its name. */
type Beside = Readonly<Record<string, readonly Route[]>>

/** The work of the server after an operation, by its name. */
type Afterwards = Readonly<Record<string, (call: RouteCall) => Promise<void>>>

/** An operation that HTTP has. */
type Served = Operation & Required<Pick<Operation, 'http' | 'summary'>>

/** The routes of a subject, in the order of its operations. */
export function routesOf(subject: string, beside: Beside = {}, afterwards: Afterwards = {}): readonly Route[] {
  return Object.entries(OPERATIONS[subject] ?? {}).flatMap(([name, operation]) => {
    const { http, summary = '' } = operation
    const own =
      http === undefined ? [] : [routeOf({ subject, name }, { ...operation, http, summary }, afterwards[name])]
    return [...own, ...(beside[name] ?? [])]
  })
}

function routeOf(name: OperationName, operation: Served, afterwards: Afterwards[string] | undefined): Route {
  const [method = 'GET', path = ''] = operation.http.split(' ') as [Method?, string?]
  const { summary, scope, of, description, query, body, beginsRun, needsAll, example } = operation
  const ids = [...path.matchAll(/\{(\w+)\}/g)].map(([, id = '']) => id)
  const first = typeof scope === 'string' ? scope : scope[0]
  return {
    ...{ method, path, summary },
    scope: first === undefined || first === 'never' ? 'any' : first,
    ...given({ description, query, body, beginsRun, needsAll, example }),
    ...(ids.length === 0 ? {} : { params: Object.fromEntries(ids.map((id) => [id, PARAMS[of ?? 'run'] ?? 'id'])) }),
    answers: answersOf(operation),
    handler: async (call) => {
      const asked = takesBody(method) ? call.body : call.query.all()
      const options = operation.ask === undefined ? asked : (operation.ask as Turn)(asked)
      const values = ids.map((id) => call.params[id] ?? '')
      const found = await performed(call, name, operation, [values, options as Options])
      await afterwards?.(call)
      return answerOf(operation, operation.wire === undefined ? found : (operation.wire as Turn)(found, asked))
    },
  }
}

const PARAMS: Readonly<Partial<Record<NonNullable<Operation['of']>, 'name' | 'text'>>> = {
  agent: 'name',
  owner: 'text',
  token: 'text',
  webhook: 'text',
}

type Options = Readonly<Record<string, unknown>>
type Turn = (...given: readonly unknown[]) => unknown

async function performed(
  call: RouteCall,
  name: OperationName,
  operation: Served,
  [values, options]: readonly [ids: readonly string[], options: Options],
): Promise<unknown> {
  if (Object.hasOwn(OF_SERVER, name.subject)) {
    const { scope, serve } = operation
    for (const one of typeof scope === 'string' ? [scope] : scope) {
      if (one !== 'any' && one !== 'never') call.runtime.require(one)
    }
    const caller: ServerCaller = serverCaller(call)
    return (serve as Turn | undefined)?.(caller, ...argumentsOf(operation, values, options))
  }
  const [id = '', ...others] = values
  if (!Object.hasOwn(OF_CONVERSATION, name.subject))
    return call.runtime.serve(name, argumentsOf(operation, values, options))
  return (await call.runtime.conversation(id)).serve(name, argumentsOf(operation, others, options))
}

/** The parts of the server as an operation of one caller has them. */
function serverCaller({ principal, tokenId, endsAt, server, runtime }: RouteCall): ServerCaller {
  const { tokens, webhooks, retention } = server
  const maker = { principal, tokenId, endsAt }
  return {
    principal,
    tokens: {
      list: () => tokens.list(principal, tokenId),
      make: ({ principal: wanted, ...rest }) =>
        tokens.makeNarrower(maker, { ...rest, principal: { ...wanted, id: wanted.id ?? principal.id } }),
      revoke: async (id, cancel) =>
        cancel
          ? tokens.revokeWithRuns(id, runtime, tokenId)
          : { revoked: await tokens.revoke(id, principal, tokenId), cancelled: [] },
    },
    webhooks: {
      list: () => webhooks.list(maker),
      make: (request) => webhooks.make(maker, request),
      info: (id) => webhooks.info(id, maker),
      remove: (id) => webhooks.remove(id, maker),
      deliveries: (id, page) => webhooks.listDeliveries(id, maker, page),
      again: (id, delivery) => webhooks.again(id, delivery, maker),
    },
    owners: { get: (owner) => retention.get(owner), set: (kept) => retention.set(kept) },
  }
}

/** The forms of its answers, by status. */
function answersOf({ gives, status = 200, else: others = {} }: Operation): Readonly<Record<number, AnswerForm>> {
  const beside = Object.fromEntries(Object.entries(others).map(([code, description]) => [code, { description }]))
  if (gives === undefined) return { 204: { description: 'Done.' }, ...beside }
  if ('text' in gives) return { [status]: { description: gives.text, type: 'text/plain' }, ...beside }
  const [shape, description] = gives
  return { [status]: { description, shape: shape as keyof Answers }, ...beside }
}

function answerOf({ gives, status = 200 }: Operation, found: unknown): Answer {
  if (gives === undefined) return NOTHING
  return 'text' in gives ? { status, text: String(found) } : json(found, status)
}

/** Leaves out what is undefined. */
function given<Parts extends object>(
  parts: { readonly [Name in keyof Parts]: Parts[Name] | undefined },
): Partial<Parts> {
  return Object.fromEntries(Object.entries(parts).filter(([, value]) => value !== undefined)) as Partial<Parts>
}
