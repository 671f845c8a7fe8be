import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { scriptedModel } from 'legate/testing'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { methodsFile, requestsFile, type Table } from './support/made-operations.ts'
import { tempFolder } from './support/temp-folder.ts'

// One more operation, in one file of a copy of the sources: every door has it, with its checks and its words.

const root = path.resolve(import.meta.dirname, '..')

const ADDED = `
  /** How many runs a conversation has had, counted from a place on. */
  rounds: operation({
    summary: 'How many runs a conversation has had.',
    scope: 'read',
    of: 'conversation',
    http: 'GET /v1/conversations/{id}/rounds',
    query: { after: { type: 'integer', description: 'Only runs after this place.' } },
    gives: ['Rounds', 'The number.'],
    run: async ({ store }, id: string, { after = 0 }: { readonly after?: number } = {}): Promise<Rounds> => {
      const tree = await store.tree(id)
      return { rounds: Math.max(0, (tree.conversation(id)?.turnCount ?? 0) - after) }
    },
  }),
} as const

export interface Rounds {
  readonly rounds: number
}
`

/** Right and wrong uses of it: the compiler says which of the wrong ones it takes. */
const USES = `
import type { ConnectOptions, LegateClient } from './server/client/index.ts'
import type { Runtime, ScopedRuntime } from './index.ts'

export async function uses(runtime: Runtime, scoped: ScopedRuntime, client: LegateClient): Promise<number[]> {
  const signal = new AbortController().signal
  const all = [await runtime.rounds('x', { after: 1 }), await scoped.rounds('x'), await client.rounds('x', { after: 1, signal })]
  // @ts-expect-error
  await runtime.rounds('x', { afterwards: 1 })
  // @ts-expect-error
  await scoped.rounds(1)
  // @ts-expect-error
  await client.rounds('x', { after: '1' })
  // @ts-expect-error
  const wrong: string = (await client.rounds('x')).rounds
  return [...all.map(({ rounds }) => rounds), wrong.length]
}
export type Unused = ConnectOptions
`

let folder = ''

/** A module of the copy. */
const copied = (file: string): Promise<unknown> => import(pathToFileURL(path.join(folder, 'src', file)).href)

beforeAll(async () => {
  folder = tempFolder(afterAll)
  const isTest = /\.test\.ts$/
  for (const name of ['src', 'scripts', 'docs/reference', 'package.json', 'tsconfig.json']) {
    mkdirSync(path.dirname(path.join(folder, name)), { recursive: true })
    cpSync(path.join(root, name), path.join(folder, name), { recursive: true, filter: (file) => !isTest.test(file) })
  }
  symlinkSync(path.join(root, 'node_modules'), path.join(folder, 'node_modules'))
  const file = path.join(folder, 'src/core/operations/usage.ts')
  writeFileSync(file, readFileSync(file, 'utf8').replace('\n} as const\n', ADDED))
  writeFileSync(path.join(folder, 'src/uses.ts'), USES)
  const table = (await copied('core/operations/table.ts')) as Table
  writeFileSync(path.join(folder, 'src/core/operations/methods.made.ts'), methodsFile(table))
  writeFileSync(path.join(folder, 'src/core/operations/wire/requests.made.ts'), requestsFile(table))
  execFileSync(process.execPath, ['scripts/reference.mjs'], { cwd: folder, stdio: 'pipe' })
}, 240_000)

describe('an operation that one file declares', () => {
  test('has its types at every door', () => {
    const compiler = path.join(root, 'node_modules/.bin/tsc')
    const { stdout } = spawnSync(compiler, ['--noEmit', '--pretty', 'false'], { cwd: folder, encoding: 'utf8' })

    expect(stdout).toBe('')
  }, 240_000)

  test('is a method of a runtime, of a principal and of a client, with the checks of all operations', async () => {
    const { agent, createRuntime } = (await copied('index.ts')) as typeof import('legate')
    const { handler, Tokens } = (await copied('server/index.ts')) as typeof import('legate/server')
    const { connect } = (await copied('server/client/index.ts')) as typeof import('legate/client')
    const greeter = agent({ name: 'greeter', instructions: '', model: scriptedModel(() => 'Hello.') })
    await using runtime = createRuntime({ agents: [greeter] })
    const { conversationId: id, result } = runtime.as({ id: 'ann', scopes: ['start', 'read'] }).run('greeter', 'Hi')
    await result
    const answer = handler(runtime)
    const fetch = (url: string, init: RequestInit) => answer(new Request(url, init))
    const clientOf = async (name: string, scopes: readonly 'read'[]) => {
      const { token } = await new Tokens(runtime.store.registry).make({ principal: { id: name, scopes } })
      return connect({ url: 'http://localhost', token, fetch }) as unknown as Rounded
    }
    const [own, other] = [await clientOf('ann', ['read']), await clientOf('bob', ['read'])]
    const as = (name: string, scopes: readonly 'read'[]) => runtime.as({ id: name, scopes }) as unknown as Rounded

    expect(await (runtime as unknown as Rounded).rounds(id)).toEqual({ rounds: 1 })
    expect(await as('ann', ['read']).rounds(id, { after: 1 })).toEqual({ rounds: 0 })
    expect(await own.rounds(id)).toEqual({ rounds: 1 })
    expect(await own.rounds(id, { after: 1 })).toEqual({ rounds: 0 })
    await expect(as('ann', []).rounds(id)).rejects.toThrow('ann lacks the scope read.')
    await expect(as('bob', ['read']).rounds(id)).rejects.toThrow(`There is no conversation ${id} in this store.`)
    await expect(other.rounds(id)).rejects.toMatchObject({ status: 404 })
    await expect((await clientOf('ann', [])).rounds(id)).rejects.toMatchObject({ status: 403 })
    await expect(own.rounds(id, { after: 'x' as never })).rejects.toMatchObject({ status: 400 })
    await expect(own.rounds(id, { since: 1 } as never)).rejects.toMatchObject({ status: 400 })
  })

  test('is in OpenAPI with the schema of its answer, and in the reference', async () => {
    const { TABLE } = (await copied(
      'server/http/routes/table.ts',
    )) as typeof import('../src/server/http/routes/table.ts')
    const { openApi } = (await copied(
      'server/http/table/openapi.ts',
    )) as typeof import('../src/server/http/table/openapi.ts')
    const { paths, components } = openApi(TABLE, '1') as unknown as Described
    const words = readFileSync(path.join(folder, 'docs/reference/options.md'), 'utf8')

    expect(paths['/v1/conversations/{id}/rounds']).toMatchObject({
      get: { summary: 'How many runs a conversation has had.', security: [{ bearer: ['read'] }] },
    })
    expect(components.schemas['Rounds']).toMatchObject({ properties: { rounds: { type: 'number' } } })
    expect(words).toContain('`LegateClient.rounds(id, options)` | How many runs a conversation has had')
  })
})

interface Rounded {
  rounds(id: string, options?: { readonly after?: number }): Promise<{ readonly rounds: number }>
}

interface Described {
  readonly paths: Readonly<Record<string, unknown>>
  readonly components: { readonly schemas: Readonly<Record<string, unknown>> }
}
