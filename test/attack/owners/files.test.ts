// The files of the file domain belong to the owner of the run, where code says so; where it says nothing, nobody else starts.

import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import path from 'node:path'
import {
  type AnyAgent,
  agent,
  createRuntime,
  type Grant,
  isLegateError,
  type RuntimeOptions,
  type Tools,
  tool,
} from 'legate'
import { openSubagents, recipeAgent, skillsTools } from 'legate/recipe'
import { sqliteStore } from 'legate/store/sqlite'
import { scriptedModel } from 'legate/testing'
import { developerTools, diskFiles, fileTools, memoryFiles, memoryTools } from 'legate/tools'
import { describe, expect, test } from 'vitest'
import { recipe } from '../../recipe/open/support.ts'
import { folderWith } from '../../recipe/support/folder.ts'
import { openRuntime } from '../../support/reading.ts'
import { tempFolder } from '../../support/temp-folder.ts'
import { type Calls, obedient } from '../support/obedient.ts'

const SECRET = 'ANN-4711'
const ALL: Grant = { use: ['tool:*', 'agent:*', 'model:*', 'file.*:**', 'exec:*'] }

const LONG = { modelCalls: 200, toolCalls: 200 }

function coderWith(tools: Tools = { ...fileTools(), ...developerTools() }, more: object = {}) {
  return agent({ name: 'coder', instructions: '', model: obedient(), tools, grant: ALL, budget: LONG, ...more })
}

/** What an agent is told by each of these calls in a run of this owner. */
async function told(options: RuntimeOptions, owner: string | null, calls: Calls, who: AnyAgent = coderWith()) {
  await using runtime = createRuntime(options)
  const { status, text, error } = await runtime.run(
    who,
    JSON.stringify(calls) as never,
    owner === null ? {} : { owner },
  ).result
  expect([status, error]).toEqual(['completed', null])
  return JSON.parse(text) as string[]
}

const WRITE: Calls = [['write_file', { path: '/workspace/notes/a.txt', content: SECRET }]]

describe('files of their own', () => {
  /** The workspace of an application in which Ann has written a file. */
  async function shop() {
    const workspace = folderWith({ 'common.txt': 'for all' })
    const files = diskFiles({ workspace, owners: 'own' })
    await told({ files }, 'ann', WRITE)
    const [folder = ''] = readdirSync(path.join(workspace, '.legate.owners'))
    return { workspace, files, folder, annas: path.join(workspace, '.legate.owners', folder) }
  }

  test('an owner writes in an area of its own, for its user alone, under a name that tells nothing', async () => {
    const { files, folder, annas, workspace } = await shop()

    expect(folder).toMatch(/^[0-9a-f]{64}$/)
    expect(readFileSync(path.join(annas, 'notes/a.txt'), 'utf8')).toBe(SECRET)
    expect([annas, path.dirname(annas)].map((one) => statSync(one).mode & 0o777)).toEqual([0o700, 0o700])
    expect(existsSync(path.join(workspace, 'notes'))).toBe(false)
    expect(await told({ files }, 'ann', [['read_text_file', { path: 'notes/a.txt' }]])).toEqual([
      expect.stringContaining(SECRET),
    ])
  })

  test('no tool of another owner, or of a run without one, shows or reaches what is in it, whatever path it names', async () => {
    const { files, folder } = await shop()
    const inside = `/workspace/.legate.owners/${folder}/notes/a.txt`
    const paths = [
      ...['/workspace/notes/a.txt', 'notes/a.txt', inside, inside.replace('.legate.owners', '.LEGATE.OWNERS')],
      ...[`/workspace/../.legate.owners/${folder}/notes/a.txt`, inside.replace('owners', 'owner\u017f')],
    ]
    const calls: Calls = [
      ...paths.flatMap(
        (one): Calls => [
          ['read_text_file', { path: one }],
          ['edit_file', { path: one, edits: [{ oldText: 'ANN', newText: 'EVE' }] }],
          ['delete_file', { path: one }],
          ['get_file_info', { path: one }],
        ],
      ),
      ['list_directory', { path: `/workspace/.legate.owners/${folder}` }],
      ['read_multiple_files', { paths }],
      ['list_directory', { path: '/workspace' }],
      ['list_directory_with_sizes', { path: '/workspace' }],
      ['search_files', { path: '/workspace', pattern: 'a' }],
      ['search_text', { text: 'ANN' }],
      ['tree', { depth: 20 }],
      ['list_allowed_directories', {}],
    ]
    const all = { ...fileTools(), search_text: developerTools().search_text, tree: developerTools().tree }

    for (const owner of ['eve', null, 'local']) {
      const results = await told({ files }, owner, calls, coderWith(all))
      expect(results).toHaveLength(calls.length)
      expect(results.join('\n')).not.toContain(SECRET)
      expect(results.slice(paths.length * 4 + 2).join('\n')).not.toMatch(/owners|[0-9a-f]{64}/)
    }
    expect(await told({ files }, 'ann', [['read_text_file', { path: 'notes/a.txt' }]])).toEqual([
      expect.stringContaining(SECRET),
    ])
  })

  test('runs without an owner and those of the person at this machine have the workspace itself', async () => {
    const { files, workspace } = await shop()

    for (const owner of [null, 'local']) {
      const [read] = await told({ files }, owner, [['read_text_file', { path: 'common.txt' }]])
      expect(read).toContain('for all')
    }
    const [read] = await told({ files }, 'ann', [['read_text_file', { path: 'common.txt' }]])
    expect(read).toContain('not found')
    expect(readdirSync(workspace).sort()).toEqual(['.legate.owners', 'common.txt'])
  })

  test('the shell, and programs that recipes check with, run in the area of the owner', async () => {
    const { files, annas } = await shop()
    const checked = recipe(
      'prompt: Go.\nextensions: []\nretry:\n  max_retries: 1\n  checks:\n    - {type: shell, command: "sh -c \'pwd -P > checked.txt\'"}\n',
    )
    const grant = { use: ['tool:*', 'agent:*', 'model:*', 'file.*:/workspace/**', 'exec:*'] }
    const checker = await recipeAgent(checked, { grant, cwd: tempFolder() })
    await using runtime = createRuntime({ files, model: scriptedModel(() => 'Done.') })
    const { status } = await runtime.run(checker, 'Go.' as never, { owner: 'ann' }).result

    const [here, there] = await told({ files }, 'ann', [
      ['shell', { command: 'pwd -P' }],
      ['shell', { command: 'cat a.txt', cwd: 'notes' }],
    ])
    expect([here, there]).toEqual([annas, SECRET])
    expect([status, readFileSync(path.join(annas, 'checked.txt'), 'utf8')]).toEqual(['completed', `${annas}\n`])
  })

  test('a subagent, and an agent that a model describes, work in the area of the owner at the root', async () => {
    const { files } = await shop()
    const child = coderWith(fileTools(), { name: 'child' })
    const read = JSON.stringify([['read_text_file', { path: '/workspace/notes/a.txt' }]])
    const tools = { ...openSubagents(), ...fileTools() }
    const host = agent({
      name: 'host',
      instructions: '',
      model: obedient(),
      tools,
      subagents: { child },
      grant: { ...ALL, delegate: ALL.use ?? [] },
    })
    const calls: Calls = [
      ['child', { message: read }],
      ['subagent', { instructions: read, summary: false }],
    ]

    expect((await told({ files }, 'ann', calls, host)).join()).toMatch(new RegExp(`${SECRET}.*${SECRET}`, 's'))
    expect((await told({ files }, 'eve', calls, host)).join()).not.toContain(SECRET)
  })

  test('a fork and a later turn of somebody else stay with the owner of the conversation', async () => {
    const { files } = await shop()
    const coder = coderWith(fileTools())
    const runtime = openRuntime({ files, agents: [coder] })
    const read = JSON.stringify([['read_text_file', { path: '/workspace/notes/a.txt' }]])
    const admin = runtime.as({ id: 'root', scopes: ['start', 'read', 'history', 'admin'], sees: 'all' })
    const first = runtime.run(coder, '[]', { owner: 'ann' })
    await first.result
    const conversation = await runtime.conversation(first.conversationId)
    const [node] = (await conversation.messagePage({})).slice(-1)
    const { id: lane } = await conversation.history.fork(node?.nodeId ?? '')

    for (const conversationId of [first.conversationId, lane]) {
      const { text } = await admin.run('coder', read, { conversationId }).result
      expect(text).toContain(SECRET)
    }
  })

  test('a killed process loses no area: the run goes on in it', async () => {
    const { files } = await shop()
    const store = path.join(tempFolder(), 'runs.db')
    const asking = { ...ALL, ask: ['file.write:**'] }
    const coder = coderWith(fileTools(), { grant: asking })
    const first = createRuntime({ files, store: sqliteStore(store), agents: [coder] })
    const run = first.run(coder, JSON.stringify([...WRITE, ['read_text_file', { path: '/workspace/notes/a.txt' }]]), {
      owner: 'ann',
    })
    for await (const event of run) if (event.type === 'approval-request') break
    await first.close()
    const second = openRuntime({ files, store: sqliteStore(store), agents: [coder] })
    const [resumed] = await second.resume()
    const [asked] = await second.approvals()
    await second.answer(asked?.nodeId ?? '', { allow: true })

    expect((await resumed?.result)?.text).toContain(SECRET)
  })

  test('rules that keep a skill of the project from an agent keep it in the runs of every owner', async () => {
    const body = (name: string) => `---\nname: ${name}\ndescription: d\n---\nDo ${name}.\n`
    const workspace = folderWith({
      '.agents/skills/open/SKILL.md': body('open'),
      '.agents/skills/secret/SKILL.md': body('secret'),
    })
    const files = diskFiles({ workspace, owners: 'own' })
    const tools = { ...skillsTools({ cwd: workspace, home: tempFolder(), env: {} }), ...fileTools() }
    const grant = { ...ALL, deny: ['file.read:/workspace/.agents/skills/secret/**'] }
    const coder = coderWith(tools, { grant })
    const planted = { path: '/workspace/.agents/skills/evil/SKILL.md', content: body('evil') }
    await told({ files }, 'eve', [['write_file', planted]], coder)

    for (const owner of [null, 'ann', 'eve']) {
      expect(await told({ files }, owner, [['skills_list', {}]], coder)).toEqual(['open - d'])
    }
    const [folder = ''] = readdirSync(path.join(workspace, '.legate.owners'))
    const others = skillsTools({ cwd: path.join(workspace, '.legate.owners', folder), home: tempFolder(), env: {} })
    const elsewhere = coderWith({ ...others, ...fileTools() }, { grant })
    expect(await told({ files }, 'ann', [['skills_list', {}]], elsewhere)).toEqual(['There are no skills.'])
  })

  test('every area is one of the owner, and code of the application opens it by name', async () => {
    const folder = folderWith({ 'in/brief.md': 'for all' })
    const options = { workspace: path.join(folder, 'out'), userinput: path.join(folder, 'in') }
    const files = diskFiles({ ...options, owners: 'own', allowWriteUserinput: true })
    await files.of('ann').open(ALL).write('/userinput/brief.md', 'for Ann')
    const read: Calls = [['read_text_file', { path: '/userinput/brief.md' }]]

    expect((await told({ files }, 'ann', read)).join()).toContain('for Ann')
    expect((await told({ files }, 'eve', read)).join()).toContain('not found')
    expect((await told({ files }, null, read)).join()).toContain('for all')
  })

  test('files in memory: each owner begins with files like the first ones, and changes nobody else has', async () => {
    const files = memoryFiles({ workspace: { 'a.txt': 'first' }, owners: 'own' })
    const read: Calls = [['read_text_file', { path: '/workspace/a.txt' }]]
    await told({ files }, 'ann', [['write_file', { path: '/workspace/a.txt', content: SECRET }]])

    const seen = await Promise.all(
      ['ann', 'eve', null].map(async (owner) => (await told({ files }, owner, read)).join()),
    )
    expect(seen.map((text) => /ANN-4711|first/.exec(text)?.[0])).toEqual([SECRET, 'first', 'first'])
    expect(await files.forgetOwner('ann')).toBe(1)
    expect((await told({ files }, 'ann', read)).join()).toContain('first')
  })

  test('two edits of one file at one moment, under one owner, both hold', async () => {
    const { files } = await shop()
    const edits = Array.from({ length: 20 }, (_, at) =>
      files
        .of('ann')
        .open(ALL)
        .edit('/workspace/notes/a.txt', [{ oldText: SECRET, newText: `${SECRET}.${at}` }]),
    )
    await Promise.all(edits)

    expect((await files.of('ann').open(ALL).readText('/workspace/notes/a.txt')).split('.')).toHaveLength(21)
  })
})

test('there are two words for whose things are, and no other is taken for one of them', async () => {
  const wrong = { owners: 'mine' as 'own' }
  const made: readonly (() => unknown)[] = [
    () => diskFiles({ workspace: tempFolder(), ...wrong }),
    () => memoryFiles(wrong),
    () => memoryTools(wrong),
    () => openSubagents({ memory: wrong }),
    () => recipeAgent(recipe('prompt: Go.\n'), { memory: wrong }),
  ]
  for (const make of made) {
    await expect((async () => make())()).rejects.toThrow(/owners must be one of "own", "shared", not "mine"/)
  }
})

describe('shared files', () => {
  test('where code says so, all owners work in one place', async () => {
    const files = diskFiles({ workspace: tempFolder(), owners: 'shared' })
    await told({ files }, 'ann', WRITE)

    for (const owner of ['eve', null]) {
      expect((await told({ files }, owner, [['read_text_file', { path: 'notes/a.txt' }]])).join()).toContain(SECRET)
    }
  })
})

describe('where nobody has said whose the files are', () => {
  const files = () => memoryFiles({ workspace: { 'a.txt': 'x' } })
  const CHOICES =
    /diskFiles\(\{ owners: 'own' \}\).*diskFiles\(\{ owners: 'shared' \}\).*--files own or --files shared/s
  const plain = (more: object) => agent({ name: 'who', instructions: '', model: scriptedModel(() => 'ok'), ...more })

  async function startOf(
    who: AnyAgent,
    owner: string | null = 'ann',
    options: RuntimeOptions = { files: files(), model: scriptedModel(() => 'ok') },
  ) {
    await using runtime = createRuntime(options)
    const run = runtime.run(who, 'Go.' as never, owner === null ? {} : { owner })
    const outcome = await run.result.then(
      ({ status }) => status,
      (error: unknown) => error,
    )
    return { outcome, kept: (await runtime.runs()).length }
  }

  const child = plain({ name: 'child', tools: fileTools(), grant: ALL })
  const inheritor = plain({ name: 'child', files: 'inherit' })
  const { shell, search_text, tree } = developerTools()
  const openly = { ...ALL, delegate: ALL.use ?? [] }

  test.each<[string, () => AnyAgent | Promise<AnyAgent>]>([
    ['file tools', () => plain({ tools: fileTools(), grant: ALL })],
    ['a shell', () => plain({ tools: { shell }, grant: { use: ['tool:*', 'exec:git *'] } })],
    ['a search', () => plain({ tools: { search_text }, grant: { use: ['tool:*', 'file.read:/workspace/**'] } })],
    [
      'a tree, if a person allows it',
      () => plain({ tools: { tree }, grant: { use: ['tool:*'], ask: ['file.list:/workspace/**'] } }),
    ],
    ['a subagent with file tools', () => plain({ subagents: { child }, grant: openly })],
    [
      'a subagent that inherits them',
      () =>
        plain({
          subagents: { inheritor },
          tools: { search_text, ...fileTools() },
          grant: { ...openly, use: ['tool:*', 'agent:*'] },
        }),
    ],
    [
      'a subagent in the background',
      () => plain({ subagents: { child: { agent: child, background: true } }, grant: openly }),
    ],
    ['subagents of files', () => plain({ tools: openSubagents({ discover: true }), grant: ALL })],
    [
      'subagents that a model describes, to which it passes on what it may not do itself',
      () =>
        plain({
          tools: { ...openSubagents(), shell },
          grant: { use: ['tool:*', 'agent:*', 'model:*'], delegate: ALL.use ?? [] },
        }),
    ],
    ['a recipe', async () => (await recipeAgent(recipe('prompt: Go.\n'), { grant: ALL })) as AnyAgent],
  ])('an agent with %s is started by nobody else, and nothing is recorded', async (_, make) => {
    const who = await make()
    const { outcome, kept } = await startOf(who)

    expect(isLegateError(outcome, 'files_undecided'), String(outcome)).toBe(true)
    expect((outcome as Error).message).toMatch(CHOICES)
    expect((outcome as Error).message).toContain(`"${who.name}"`)
    expect(kept).toBe(0)
  })

  test.each<[string, () => AnyAgent | Promise<AnyAgent>]>([
    ['tools of your own', () => plain({ tools: { mine: tool({ description: 'd', input: {}, execute: () => 1 }) } })],
    ['file tools that no rule lets near a file', () => plain({ tools: fileTools() })],
    ['a shell that its grant denies', () => plain({ tools: { shell }, grant: { ...ALL, deny: ['exec:*'] } })],
    ['a subagent that it lets near no file', () => plain({ subagents: { child } })],
    ['subagents that a model describes, which have its own tools', () => plain({ tools: openSubagents(), grant: ALL })],
    ['a recipe without a grant', async () => (await recipeAgent(recipe('prompt: Go.\n'))) as AnyAgent],
  ])('an agent with %s is started by everybody', async (_, make) => {
    expect(await startOf(await make(), 'ann', { files: files(), model: scriptedModel(() => 'ok') })).toEqual({
      outcome: 'completed',
      kept: 1,
    })
  })

  test('runs without an owner, and the person at this machine, start it', async () => {
    expect([await startOf(child, null), await startOf(child, 'local')]).toEqual([
      { outcome: 'completed', kept: 1 },
      { outcome: 'completed', kept: 1 },
    ])
  })

  test('a runtime without files refuses nobody, and so does one whose own layer allows none', async () => {
    expect((await startOf(child, 'ann', {})).outcome).toBe('completed')
    const grant = { use: ['tool:*', 'model:*'] }
    expect((await startOf(child, 'ann', { files: files(), grant })).outcome).toBe('completed')
  })

  test('a conversation of such an owner that was there before goes no further, by no way', async () => {
    const store = path.join(tempFolder(), 'runs.db')
    const before = createRuntime({ store: sqliteStore(store), files: memoryFiles({ owners: 'shared' }) })
    const first = before.run(child, 'Go.', { owner: 'ann' })
    await first.result
    await before.close()
    const runtime = openRuntime({ store: sqliteStore(store), files: files(), agents: [child] })
    const { conversationId } = first
    const conversation = await runtime.conversation(conversationId)
    const said = await conversation.messagePage({})
    const admin = runtime.as({ id: 'root', scopes: ['start', 'read', 'admin'], sees: 'all' })

    const ways = [
      () => runtime.run(child, 'On.', { conversationId }).result,
      () => runtime.run(child, 'On.', { conversationId, owner: 'ann' }).result,
      () => admin.run('child', 'On.', { conversationId }).result,
      () => conversation.history.rerun(said.at(-1)?.nodeId ?? ''),
      () => conversation.history.edit(said[0]?.nodeId ?? '', 'Other.'),
    ]
    for (const way of ways) await expect(way()).rejects.toMatchObject({ code: 'files_undecided' })
  })

  test('an open run of before goes on, and what it calls is told why it has no files', async () => {
    const store = path.join(tempFolder(), 'runs.db')
    const coder = coderWith({
      ...fileTools(),
      own: tool({
        description: 'd',
        input: { type: 'object' },
        approval: 'ask',
        execute: (_, { files: mine }) => mine.readText('/workspace/a.txt'),
      }),
    })
    const calls: Calls = [
      ['own', {}],
      ['read_text_file', { path: '/workspace/a.txt' }],
    ]
    const before = createRuntime({ store: sqliteStore(store), files: memoryFiles({ owners: 'shared' }) })
    for await (const event of before.run(coder, JSON.stringify(calls), { owner: 'ann' })) {
      if (event.type === 'approval-request') break
    }
    await before.close()
    const runtime = openRuntime({ store: sqliteStore(store), files: files(), agents: [coder] })
    const [run] = await runtime.resume()
    const [asked] = await runtime.approvals()
    await runtime.answer(asked?.nodeId ?? '', { allow: true })
    const { status, text } = (await run?.result) ?? {}

    expect(status).toBe('completed')
    for (const result of JSON.parse(text ?? '[]') as string[]) expect(result).toMatch(CHOICES)
  })

  test('the list of agents says which they are', async () => {
    const mine = plain({ name: 'mine' })
    const infos = async (owners?: 'own' | 'shared') => {
      const runtime = openRuntime({ files: memoryFiles(owners === undefined ? {} : { owners }), agents: [child, mine] })
      return (await runtime.agents()).map((one) => one.files)
    }

    expect([await infos(), await infos('own'), await infos('shared')]).toEqual([
      ['undecided', null],
      ['own', null],
      ['shared', null],
    ])
  })
})

describe('files go with their owner', () => {
  test('all of them, however a program left them, and those of nobody else; what was begun is ended by the next call', async () => {
    const workspace = tempFolder()
    const files = diskFiles({ workspace, owners: 'own' })
    const coder = coderWith()
    const leave =
      'mkdir -p locked/in && echo x > locked/in/a && chmod 000 locked/in locked && ln -s / root && mkfifo pipe'
    const deep = 'mkdir -p $(printf "d/%.0s" $(seq 60)) && cd d/d && echo x > a'
    for (const owner of ['ann', 'eve']) {
      await told({ files }, owner, [...WRITE, ['shell', { command: `${leave}; ${deep}` }]], coder)
    }
    const runtime = openRuntime({ files, agents: [coder] })
    await runtime.run(coder, '[]', { owner: 'ann' }).result
    const owned = () => readdirSync(path.join(workspace, '.legate.owners')).length

    expect(await runtime.forgetOwner('ann')).toEqual({ owner: 'ann', trees: 1, cancelled: 0, files: 5 })
    expect(owned()).toBe(1)
    expect(await runtime.forgetOwner('ann')).toMatchObject({ trees: 0, files: 0 })
    expect((await told({ files }, 'eve', [['read_text_file', { path: 'notes/a.txt' }]])).join()).toContain(SECRET)
    await runtime.forgetOwner('eve')
    expect(owned()).toBe(0)
  })

  test('an owner’s own files go with the owner, also if owners share files by now', async () => {
    const workspace = tempFolder()
    await told({ files: diskFiles({ workspace, owners: 'own' }) }, 'ann', WRITE)
    writeFileSync(path.join(workspace, 'common.txt'), 'for all')
    const runtime = openRuntime({ files: diskFiles({ workspace, owners: 'shared' }) })

    expect((await runtime.forgetOwner('ann')).files).toBe(1)
    expect(readFileSync(path.join(workspace, 'common.txt'), 'utf8')).toBe('for all')
  })

  test('the store itself, if a program moved it there, stays and is told', async () => {
    const workspace = tempFolder()
    const files = diskFiles({ workspace, owners: 'own' })
    const store = path.join(workspace, 'runs.db')
    const runtime = openRuntime({ files, store: sqliteStore(store), agents: [coderWith()] })
    await runtime.run('coder', JSON.stringify([...WRITE, ['shell', { command: `ln ${store} mine.db` }]]), {
      owner: 'ann',
    }).result
    const [folder = ''] = readdirSync(path.join(workspace, '.legate.owners'))
    const error = await runtime.forgetOwner('ann').catch((thrown: unknown) => thrown)

    expect(isLegateError(error, 'store') && error.message).toContain('it holds files of the runtime')
    expect(readdirSync(path.join(workspace, '.legate.owners', folder))).toEqual(['mine.db'])
    rmSync(path.join(workspace, '.legate.owners', folder, 'mine.db'))
    expect(await runtime.forgetOwner('ann')).toMatchObject({ files: 0 })
    expect(readdirSync(path.join(workspace, '.legate.owners'))).toEqual([])
  })

  test('a link in the place of the folder of all owners leads nowhere: nothing is written, and nothing deleted', async () => {
    const [workspace, victim] = [tempFolder(), tempFolder()]
    const files = diskFiles({ workspace, owners: 'own' })
    await told({ files }, 'ann', WRITE)
    const [folder = ''] = readdirSync(path.join(workspace, '.legate.owners'))
    const other = tempFolder()
    mkdirSync(path.join(victim, folder))
    writeFileSync(path.join(victim, folder, 'precious'), 'x')
    renameSync(path.join(workspace, '.legate.owners'), path.join(other, 'moved'))
    symlinkSync(victim, path.join(workspace, '.legate.owners'))

    const [said] = await told({ files }, 'ann', [['write_file', { path: '/workspace/b.txt', content: 'x' }]])
    const error = await openRuntime({ files })
      .forgetOwner('ann')
      .catch((thrown: unknown) => thrown)

    expect(said).toMatch(/denied|not found/)
    expect(isLegateError(error, 'store')).toBe(true)
    expect(readdirSync(path.join(victim, folder))).toEqual(['precious'])
  })
})
