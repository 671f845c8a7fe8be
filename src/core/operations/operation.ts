// An operation: everything that callers may ask of runs, conversations and what belongs to them, declared once.
//
// Owns:      the form of a declaration, and the types that follow from it for each door.
// Called by: the files of this folder declare operations, one file a subject; `table` joins them.
// Doors:     `Runtime` and `runtime.as(principal)` have a method for each (`runtime/operated`), the server a route with validation,
//            OpenAPI and a page of the reference (`server/table/routes-of`), `legate/client` a method (`client/requests`).
// Must stay true:
//   - Whoever speaks for a principal reaches an operation only after its scopes and the owner of its id were checked, in one
//     function for all of them: `ScopedRuntime.perform` (I12).
//   - A declaration loads with the first use of its subject: importing the package, or the client, does not read it.

import type { Json } from '../base/json.ts'
import type { JsonSchema } from '../base/schema/schema.ts'
import type { Scope } from '../grant/principal.ts'
import type { Id } from '../graph/rows.ts'
import type { ServerCaller } from './form/server-port.ts'
import type { Admitted, Operating, Talker } from './port.ts'

export type Method = 'GET' | 'POST' | 'PUT' | 'DELETE'

/** The thing that an id names. Ids of rows are taken to the owner of their tree before the operation begins. */
type Subject = ('run' | 'conversation' | 'node' | 'tree') | ('agent' | 'owner' | 'token' | 'webhook')

/** `id`: one of ours. `name`: of an agent. `text`: any short text. */
export type ParamKind = 'id' | 'name' | 'text'

export interface QuerySchema {
  readonly type: 'string' | 'integer' | 'boolean' | 'list'
  readonly description: string
  readonly enum?: readonly string[]
  readonly minimum?: number
  readonly maximum?: number
  readonly maxLength?: number
  readonly default?: string | number | boolean
}

/** The form of a body: a JSON Schema. */
export type BodySchema = JsonSchema & { readonly [key: string]: unknown }

/** How an operation is asked for over HTTP. */
interface HttpForm {
  /** The method and the path, with `{name}` for each id. */
  readonly http: `${Method} /v1/${string}`
  /** One sentence on it. */
  readonly summary: string
  /** More about it, for the reference page. */
  readonly description?: string
  readonly query?: Readonly<Record<string, QuerySchema>>
  readonly body?: BodySchema
  /** The options of a call that callers give as plain values behind the ids, in this order: `cancel(runId, reason)`. */
  readonly plain?: readonly string[]
  /** The name of the answer in OpenAPI, and one sentence on it; a text instead of JSON; or left out where there is none. */
  readonly gives?: readonly [name: string, words: string] | { readonly text: string }
  /** The status of an answer. Default 200, and 204 where there is none. */
  readonly status?: number
  /** Answers beside it, by status. */
  readonly else?: Readonly<Record<number, string>>
  /** True: the call begins a run, so it counts like a start. */
  readonly beginsRun?: boolean
  /** True: only for who sees all owners and agents. */
  readonly needsAll?: boolean
  /** A good request, for the reference page and the attack matrix. */
  readonly example?: { readonly query?: string; readonly body?: Json }
  /** Turns the query or the body of a request into the options of the call. Left out: they are the same. */
  readonly ask?: (asked: never) => unknown
  /** Turns the answer of the call into the JSON of a response. Left out: they are the same. */
  readonly wire?: (answer: never, asked: never) => unknown
}

/** An operation as it is declared. `On` is what the method of a runtime works with, `Who` that of a runtime for a principal. */
export interface Declared<On = never, Who = never> extends Partial<HttpForm> {
  /** The scopes that a principal needs, the first one for the route; `any`: none of them; `never`: no principal may call. */
  readonly scope: Scope | readonly Scope[] | 'any' | 'never'
  /** The thing that its ids name. Left out: it takes no id, or is of one conversation that is open already. */
  readonly of?: Subject
  /** The method of a runtime. Left out: a runtime has it by itself, or not at all. */
  readonly run?: (on: On, ...given: never[]) => Promise<unknown>
  /** The method of a runtime for a principal, where it differs: `who` has passed all checks of the table. Left out: as `run`. */
  readonly as?: (who: Who, ...given: never[]) => Promise<unknown>
  /** For HTTP and the client alone: those beside it offer the same under another name. */
  readonly serve?: (who: Who, ...given: never[]) => Promise<unknown>
}

/** A declaration, and the types of its methods. */
export interface Operation<Types extends OperationTypes = OperationTypes> extends Declared {
  /** For the compiler alone: never there. */
  readonly types?: Types
}

export interface OperationTypes {
  /** The method of a runtime. */
  readonly run: unknown
  /** The method of a runtime for a principal. */
  readonly as: unknown
  /** The method of a client. */
  readonly call: unknown
  /** The name of the answer over HTTP. */
  readonly gives: unknown
  /** The answer over HTTP. */
  readonly answer: unknown
}

/** Declares an operation: the types of all of its doors follow from its functions. */
export function operation<const Op extends Declared<Operating, Admitted>>(declared: Op): Operation<TypesOf<Op>> {
  return declared as Declared
}

/** Declares an operation of one conversation that is open already: `(await runtime.conversation(id)).lanes()`. */
export function talkOperation<const Op extends Declared<never, Talker>>(declared: Op): Operation<TypesOf<Op>> {
  return declared as Declared
}

/** Declares an operation that a server has beside its runtime. */
export function serverOperation<const Op extends Declared<never, ServerCaller>>(declared: Op): Operation<TypesOf<Op>> {
  return declared as Declared
}

/** Options of every request: a signal that gives it up. */
export interface CallOptions {
  /** Gives the request up. */
  readonly signal?: AbortSignal
}

/** An alias, so that declarations name the types and not all of what was declared. */
export type TypesOf<Op extends Declared> = {
  readonly run: MethodOf<Op['run']>
  readonly as: Op extends { readonly as: infer As }
    ? MethodOf<As>
    : Op extends { readonly scope: 'never' }
      ? never
      : MethodOf<Op['run']>
  readonly call: Op extends { readonly http: string } ? (...given: CalledWith<Op>) => Promise<AnswerOf<Op>> : never
  readonly gives: Op extends { readonly gives: readonly [infer Name, string] } ? Name : never
  readonly answer: AnswerOf<Op>
}

/** The function without its first parameter. */
type MethodOf<Call> = Call extends (on: never, ...given: infer Given) => infer Answer
  ? (...given: Given) => Answer
  : never

/** The function that answers requests. */
type ServedOf<Op> = Op extends { readonly serve: infer Serve }
  ? MethodOf<Serve>
  : Op extends { readonly as: infer As }
    ? MethodOf<As>
    : Op extends { readonly run: infer Run }
      ? MethodOf<Run>
      : never

type AnswerOf<Op> = Op extends { readonly wire: (...given: never[]) => infer Wire }
  ? Wire
  : ServedOf<Op> extends (...given: never[]) => Promise<infer Answer>
    ? Answer
    : never

type GivenOf<Op> = ServedOf<Op> extends (...given: infer Given) => unknown ? Given : never

/** The arguments of a client's method: the ids, plain values, and the options of the call with those of every request. */
type CalledWith<Op> = Op extends { readonly ask: (asked: infer Asked) => unknown }
  ? GivenOf<Op> extends readonly [string, ...unknown[]]
    ? [id: Id, options?: Asked & CallOptions]
    : [options?: Asked & CallOptions]
  : WithCallOptions<GivenOf<Op>>

type WithCallOptions<Given extends readonly unknown[]> =
  Required<Given> extends readonly [...infer Head, infer Last]
    ? [Last] extends [string | number | null | readonly unknown[]]
      ? [...Given, options?: CallOptions]
      : Given extends readonly [...Head, Last]
        ? [...Head, options: Last & CallOptions]
        : [...Head, options?: Last & CallOptions]
    : [options?: CallOptions]
