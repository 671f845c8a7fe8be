import { createRuntime, type Id, type ScopedRuntime } from 'legate'
import { type CallOptions, type ConversationAnswer, connect, type LegateClient, type Page } from 'legate/client'
import type { RunInfo, TimelineRun } from 'legate/rows'
import { describe, expectTypeOf, test } from 'vitest'

// Types of every door follow from the declaration of an operation. Nothing here runs: the compiler is the test.

const client = () => connect({ url: 'http://localhost' })
const never = (_: () => unknown) => undefined

describe('types of operations', () => {
  test('a misspelt option does not compile, at any door', () => {
    const runtime = createRuntime()
    never(() => runtime.runs({ limit: 1, owner: 'ann' }))
    // @ts-expect-error
    never(() => runtime.runs({ limits: 1 }))
    // @ts-expect-error
    never(() => runtime.as({ id: 'ann', scopes: [] }).graph('x', { turn: 1 }))
    never(() => client().otlp('x', { content: true, signal: new AbortController().signal }))
    // @ts-expect-error
    never(() => client().otlp('x', { contents: true }))
    // @ts-expect-error
    never(() => client().conversation('x').fork('n', { child: 'reuse' }))
    // @ts-expect-error
    never(() => client().settle('x', { leave: true }))
    // @ts-expect-error
    never(() => client().timelines('x'))
  })

  test('a call has the arguments of its declaration, and the answer of its door', () => {
    expectTypeOf<LegateClient['timeline']>().returns.resolves.toEqualTypeOf<TimelineRun>()
    expectTypeOf<ScopedRuntime['runs']>().returns.resolves.toEqualTypeOf<RunInfo[]>()
    expectTypeOf<LegateClient['runs']>().returns.resolves.toEqualTypeOf<Page<'runs', RunInfo>>()
    expectTypeOf<ReturnType<LegateClient['conversation']>['get']>().returns.resolves.toEqualTypeOf<ConversationAnswer>()
    expectTypeOf<LegateClient['cancel']>().parameters.toEqualTypeOf<
      [runId: Id, reason?: string | undefined, options?: CallOptions]
    >()
    expectTypeOf<ScopedRuntime['cancel']>().parameters.toEqualTypeOf<[runId: Id, reason?: string | undefined]>()
    expectTypeOf<LegateClient['picture']>().returns.resolves.toEqualTypeOf<string>()
    expectTypeOf<LegateClient['cancel']>().returns.resolves.toEqualTypeOf<void>()
  })

  test('no principal has what is for the program itself', () => {
    expectTypeOf<ScopedRuntime>().not.toHaveProperty('copyFrom')
    expectTypeOf<ScopedRuntime>().not.toHaveProperty('restored')
    expectTypeOf<LegateClient>().not.toHaveProperty('restored')
  })
})
