// Methods from the table: how the classes of a runtime get them, and their types.

import { after } from '../base/maybe.ts'
import type { AGENTS } from './agents.ts'
import type { CONVERSATIONS, LANES } from './conversations.ts'
import type { HISTORY } from './history.ts'
import type { INBOX } from './inbox.ts'
import { operationOf } from './load.ts'
import type { NODES } from './nodes.ts'
import type { Operation, OperationTypes } from './operation.ts'
import type { OWNER_SETTINGS, OWNERS } from './owners.ts'
import type { PROCESSES } from './processes.ts'
import type { RUNS } from './runs.ts'
import type { TOKENS } from './tokens.ts'
import type { TREES } from './trees.ts'
import type { USAGE } from './usage.ts'
import type { WEBHOOKS } from './webhooks.ts'

/** All operations of a runtime. */
type RuntimeTable = typeof AGENTS &
  typeof RUNS &
  typeof CONVERSATIONS &
  typeof TREES &
  typeof NODES &
  typeof INBOX &
  typeof OWNERS &
  typeof USAGE &
  typeof PROCESSES

/** The operations that a runtime itself offers. */
export type RuntimeOperations = MethodsOf<RuntimeTable, 'run'>
/** The operations that a principal has. */
export type PrincipalOperations = MethodsOf<RuntimeTable, 'as'>
/** The operations that a principal has in a conversation. */
export type TalkOperations = MethodsOf<typeof LANES, 'as'>
/** The operations that a client has. */
export type ClientOperations = MethodsOf<ClientTable, 'call'>
/** The operations that a client has in a conversation. */
export type ClientTalkOperations = MethodsOf<TalkTable, 'call'>
/** The answers of all operations, by the name that OpenAPI has for them. */
export type OperationAnswers = AnswersOf<ClientTable & TalkTable>

type ClientTable = RuntimeTable & typeof TOKENS & typeof WEBHOOKS & typeof OWNER_SETTINGS
type TalkTable = typeof LANES & typeof HISTORY

type AnswersOf<Table> = {
  readonly [Name in keyof Table as Extract<TypeAt<Table[Name], 'gives'>, string>]: TypeAt<Table[Name], 'answer'>
}

/** The methods that a table gives at a door. */
export type MethodsOf<Table, Door extends keyof OperationTypes> = {
  readonly [Name in keyof Pick<Table, NamesAt<Table, Door>>]: TypeAt<Table[Name], Door>
}

type NamesAt<Table, Door extends keyof OperationTypes> = {
  [Name in keyof Table]: [TypeAt<Table[Name], Door>] extends [never] ? never : Name
}[keyof Table]

type TypeAt<One, Door extends keyof OperationTypes> = One extends Operation<infer Types> ? Types[Door] : never

/** The names of methods with a space between, by the subject that declares them. */
export type MethodNames = Readonly<Record<string, string>>

/** Adds a method for each name. It copies what it is given at once: what the caller changes later changes nothing. */
export function addMethods<Self>(
  to: { readonly prototype: Self },
  names: MethodNames,
  perform: (self: Self, operation: Operation, given: readonly unknown[]) => Promise<unknown>,
): void {
  for (const [subject, found] of Object.entries(names)) {
    for (const name of found.split(' ')) {
      const value = async function (this: Self, ...given: readonly unknown[]): Promise<unknown> {
        const kept = copied(given, new Map())
        return after(operationOf({ subject, name }), (found) => perform(this, found, kept))
      }
      Object.defineProperty(to.prototype, name, { value, writable: true, configurable: true })
    }
  }
}

/** A copy of plain data. Objects with functions, and all others, stay as they are. */
function copied<Value>(value: Value, known: Map<unknown, unknown>): Value {
  if (!isPlain(value)) return value
  const found = known.get(value)
  if (found !== undefined) return found as Value
  if (Array.isArray(value)) {
    const list: unknown[] = []
    known.set(value, list)
    for (const item of value) list.push(copied(item, known))
    return list as Value
  }
  const copy = {}
  known.set(value, copy)
  for (const [key, item] of Object.entries(value)) {
    Object.defineProperty(copy, key, {
      value: copied(item, known),
      enumerable: true,
      writable: true,
      configurable: true,
    })
  }
  return copy as Value
}

function isPlain(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false
  if (Array.isArray(value)) return true
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype !== Object.prototype && prototype !== null) return false
  return Object.values(value).every((item) => typeof item !== 'function')
}
