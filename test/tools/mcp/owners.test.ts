// The folder in which the program of a server runs, for owners with files of their own.

import { realpathSync } from 'node:fs'
import path from 'node:path'
import { type AnyAgent, agent, type RuntimeOptions } from 'legate'
import { mcpServer } from 'legate/mcp'
import { extensionSources, recipeAgent } from 'legate/recipe'
import type { Sources } from 'legate/tools'
import { diskFiles, memoryFiles } from 'legate/tools'
import { expect, test } from 'vitest'
import { obedient } from '../../attack/support/obedient.ts'
import { recipe } from '../../recipe/open/support.ts'
import { openRuntime } from '../../support/reading.ts'
import { tempFolder } from '../../support/temp-folder.ts'
import { MAY_START, mark, oddServer, servers } from './support.ts'

const SERVER = path.join(import.meta.dirname, 'programs/server.mjs')
const OWNED = /^(.*)\/\.legate\.owners\/[0-9a-f]{64}$/

function asking(options: RuntimeOptions, who: AnyAgent) {
  const runtime = openRuntime({ ...options, agents: [who] })
  return async (owner: string | null, ...tools: readonly string[]) => {
    const calls = JSON.stringify(tools.map((name) => [name, {}]))
    const { text } = await runtime.run(who, calls as never, owner === null ? {} : { owner }).result
    return JSON.parse(text) as string[]
  }
}

function callerOf(sources: Sources, files: RuntimeOptions['files']) {
  const who = agent({ name: 'caller', instructions: '', model: obedient(), sources, grant: MAY_START })
  return asking(files === undefined ? {} : { files }, who)
}

test('a server runs in the workspace of the owner, also one that the whole runtime shares: each owner has its own', async () => {
  const workspace = realpathSync(tempFolder())
  const word = mark()
  const odd = oddServer('x', { args: [word], scope: 'runtime' })
  const asks = callerOf({ odd }, diskFiles({ workspace, owners: 'own' }))
  const [ann = '', annas] = await asks('ann', 'odd__folder', 'odd__pid')
  const [eve = '', eves] = await asks('eve', 'odd__folder', 'odd__pid')
  const [again, same] = await asks('ann', 'odd__folder', 'odd__pid')

  expect([ann, eve].map((folder) => OWNED.exec(folder)?.[1])).toEqual([workspace, workspace])
  expect(ann).not.toBe(eve)
  expect(annas).not.toBe(eves)
  expect([again, same]).toEqual([ann, annas])
  expect(await asks(null, 'odd__folder')).toEqual([process.cwd()])
  expect(await asks('local', 'odd__folder')).toEqual([process.cwd()])
  expect(servers(word)).toHaveLength(3)
})

test('a server that ended is started again in the same folder', async () => {
  const asks = callerOf({ odd: oddServer('x') }, diskFiles({ workspace: tempFolder(), owners: 'own' }))
  const [before, , after] = await asks('ann', 'odd__folder', 'odd__dies', 'odd__folder')

  expect(before).toMatch(OWNED)
  expect(after).toBe(before)
})

test('a folder that code names stays, and so does that of the process where owners have no folders of their own', async () => {
  const cwd = realpathSync(tempFolder())
  const own = diskFiles({ workspace: tempFolder(), owners: 'own' })
  expect(await callerOf({ odd: oddServer('x', { cwd }) }, own)('ann', 'odd__folder')).toEqual([cwd])
  const others = [
    ...[diskFiles({ workspace: tempFolder(), owners: 'shared' }), diskFiles({ workspace: tempFolder() })],
    ...[memoryFiles({ owners: 'own' }), diskFiles({ internal: tempFolder(), owners: 'own' }), undefined],
  ]

  for (const files of others) {
    expect(await callerOf({ odd: oddServer('x') }, files)('ann', 'odd__folder')).toEqual([process.cwd()])
  }
})

test('the server of a recipe runs in the workspace of the owner, whatever folder the recipe is run in', async () => {
  const files = diskFiles({ workspace: tempFolder(), owners: 'own' })
  const [cwd, file] = [
    realpathSync(tempFolder()),
    recipe(`prompt: Go.\nextensions:\n  - {type: stdio, name: odd, cmd: node, args: [${SERVER}, x]}\n`),
  ]
  const who = (await recipeAgent(file, { grant: MAY_START, cwd })) as AnyAgent
  const asks = asking({ files, model: obedient() }, who)

  expect(await asks(null, 'odd__folder')).toEqual([cwd])
  expect((await asks('ann', 'odd__folder'))[0]).toMatch(OWNED)
})

test('what is decided is the program in that folder: limits of its tools stay, and people are shown no place of this machine', async () => {
  const workspace = tempFolder()
  const { sources } = extensionSources([
    {
      type: 'stdio',
      name: 'odd',
      cmd: 'node',
      args: [SERVER, 'x'],
      availableTools: ['folder'],
      description: '',
      required: false,
      timeoutSeconds: null,
      envs: {},
      envKeys: [],
    },
  ])
  const grant = { use: ['tool:*', 'model:*'], ask: ['exec:node *'] }
  const who = agent({ name: 'caller', instructions: '', model: obedient(), sources, grant })
  const runtime = openRuntime({ files: diskFiles({ workspace, owners: 'own' }), agents: [who] })
  const run = runtime.run(
    who,
    JSON.stringify([
      ['odd__folder', {}],
      ['odd__pid', {}],
    ]),
    { owner: 'ann' },
  )
  for await (const event of run) {
    if (event.type !== 'approval-request' || event.nodeId === null) continue
    expect(JSON.stringify(await runtime.approvals())).not.toContain('.legate.owners')
    await runtime.answer(event.nodeId, { allow: true })
  }
  const [folder, other] = JSON.parse((await run.result).text) as string[]

  expect(folder).toMatch(OWNED)
  expect(other).toContain('There is no tool "odd__pid"')
})

test('an MCP server may be asked for by everybody: it is no tool of ours for files', async () => {
  const asks = callerOf({ odd: mcpServer({ command: 'node', args: [SERVER, 'x'] }) }, memoryFiles())
  expect(await asks('ann', 'odd__folder')).toEqual([process.cwd()])
})
