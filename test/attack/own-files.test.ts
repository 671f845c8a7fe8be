// The runtime's own files in the agents' workspace: for an agent they do not exist, under whatever name it asks for them.

import { spawn } from 'node:child_process'
import {
  existsSync,
  linkSync,
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
import { agent, createRuntime, LegateError } from 'legate'
import { openSubagents } from 'legate/recipe'
import { jsonSession, jsonStore } from 'legate/store/json'
import { sqliteStore } from 'legate/store/sqlite'
import { record, scriptedModel } from 'legate/testing'
import { diskFiles, type Files, fileTools, memoryTools } from 'legate/tools'
import { describe, expect, onTestFinished, test } from 'vitest'
import { ownFile, ownFolder } from '../../src/core/base/system/own-files.ts'
import { DiskBackend, resolveAreas } from '../../src/core/files/disk.ts'
import { FileDomain } from '../../src/core/files/files.ts'
import { HAS_PROC } from '../../src/core/files/held-directory.ts'
import { searchTextTool, treeTool } from '../../src/core/tools/search-tools.ts'
import { delegating } from '../recipe/open/support.ts'
import { tempFolder } from '../support/temp-folder.ts'
import { GRANT } from './support/disk-world.ts'

const ways = HAS_PROC ? ([true, false] as const) : ([false] as const)
const SECRET = 'lgt_canary'

interface Workspace {
  readonly folder: string
  readonly files: Files
}

function workspace(hasProc: boolean = HAS_PROC): Workspace {
  const folder = path.join(tempFolder(), 'workspace')
  const areas = resolveAreas({ workspace: folder })
  return { folder, files: new FileDomain(new DiskBackend(areas, hasProc), {}).open(GRANT) }
}

/** What every operation says of a name, with the name left out. */
async function answers(files: Files, name: string): Promise<string[]> {
  const at = `/workspace/${name}`
  const calls = [
    () => files.stat(at),
    () => files.readText(at),
    () => files.readBytes(at, { length: 10 }),
    () => files.match(at, /./g),
    () => files.list(at),
    () => files.list(`${at}/below`),
    () => files.readText(`${at}/below`),
    () => files.edit(at, [{ oldText: 'a', newText: 'b' }]),
    () => files.delete(at),
    () => files.delete(`${at}/below`),
    () => files.inDirectory(at, async (real) => real),
  ]
  const said: string[] = []
  for (const call of calls) {
    const answer = await call().catch((error: unknown) => error)
    said.push(
      LegateError.isInstance(answer)
        ? `${answer.code} ${answer.message.replaceAll(name, '*')}`
        : JSON.stringify(answer),
    )
  }
  return said
}

/** Nobody can make a file of that name, put another one in its place, or a folder. */
async function writes(files: Files, name: string): Promise<void> {
  for (const overwrite of [true, false]) {
    await expect(files.write(`/workspace/${name}`, 'x', { overwrite })).rejects.toMatchObject({ code: 'not_found' })
  }
  await expect(files.write(`/workspace/${name}/below`, 'x')).rejects.toMatchObject({ code: 'not_found' })
}

async function expectMissing({ files }: Workspace, names: readonly string[]): Promise<void> {
  const missing = await answers(files, 'no-such-file')
  for (const name of names) {
    expect([name, await answers(files, name)]).toEqual([name, missing])
    await writes(files, name)
  }
  const seen = await files.list('/workspace')
  const shown = seen.entries.map((entry) => entry.path.slice('/workspace/'.length))
  expect(shown.filter((name) => names.includes(name))).toEqual([])
}

describe.each(ways)('I11: the runtime’s own files in the workspace, with /proc: %s', (hasProc) => {
  test('a store of SQLite is not there, nor what stands beside it or may come', async () => {
    const world = workspace(hasProc)
    const store = sqliteStore(path.join(world.folder, 'runs.db'))
    const runtime = createRuntime({ store })
    await runtime.run(agent({ name: 'a', instructions: '', model: scriptedModel(['hello']) }), 'x').result
    const before = readdirSync(world.folder).sort()
    expect(before).toEqual(['runs.db', 'runs.db-shm', 'runs.db-wal'])

    await expectMissing(world, ['runs.db', 'runs.db-wal', 'runs.db-shm', 'runs.db-journal'])
    await world.files.write('/workspace/runs.db.txt', 'another file')

    expect(readdirSync(world.folder).sort()).toEqual([...before, 'runs.db.txt'])
    expect((await world.files.list('/workspace')).entries.map(({ path }) => path)).toEqual(['/workspace/runs.db.txt'])
    expect((await runtime.runs()).length).toBe(1)
    await runtime.close()
    await expectMissing(world, ['runs.db', 'runs.db-wal', 'runs.db-shm', 'runs.db-journal'])
  })

  test('other spellings of its name are not there either, where the system would take them for the same', async () => {
    const world = workspace(hasProc)
    onTestFinished(() => sqliteStore(path.join(world.folder, 'kept.db')).close())
    sqliteStore(path.join(world.folder, 'kept.db')).close()

    await expectMissing(world, ['KEPT.DB', 'Kept.db-Journal', '\u212Aept.db', 'kept\u200c.db', 'ｋept.db'])
  })

  test('a link, a second name, a moved file and a moved folder lead to nothing of it', async () => {
    const world = workspace(hasProc)
    const { folder, files } = world
    mkdirSync(path.join(folder, 'data'))
    const file = path.join(folder, 'data', 'runs.db')
    const store = sqliteStore(file)
    onTestFinished(() => store.close())
    linkSync(file, path.join(folder, 'second'))
    symlinkSync(file, path.join(folder, 'link'))
    symlinkSync(path.join(folder, 'data'), path.join(folder, 'folder-link'))

    await expectMissing(world, ['data/runs.db', 'second'])
    for (const name of ['link', 'folder-link/runs.db']) {
      await expect(files.readBytes(`/workspace/${name}`)).rejects.toBeInstanceOf(LegateError)
    }

    rmSync(path.join(folder, 'second'))
    renameSync(file, path.join(folder, 'renamed'))
    renameSync(`${file}-wal`, path.join(folder, 'renamed-wal'))
    await expectMissing(world, ['renamed', 'renamed-wal', 'data/runs.db', 'data/runs.db-wal'])
    await files.write('/workspace/renamed-2', 'an ordinary file')

    renameSync(path.join(folder, 'renamed'), file)
    renameSync(path.join(folder, 'data'), path.join(folder, 'moved'))
    mkdirSync(path.join(folder, 'data'))
    await expectMissing(world, ['moved/runs.db', 'moved/runs.db-journal', 'data/runs.db', 'data/runs.db-journal'])
    expect(statSync(path.join(folder, 'moved/runs.db')).size).toBeGreaterThan(0)
  })

  test('a folder that holds it is neither deleted nor replaced through the files', async () => {
    const world = workspace(hasProc)
    mkdirSync(path.join(world.folder, 'data'))
    const store = sqliteStore(path.join(world.folder, 'data', 'runs.db'))
    onTestFinished(() => store.close())

    await expect(world.files.delete('/workspace/data')).rejects.toMatchObject({ code: 'not_found' })
    await expect(world.files.write('/workspace/data', 'x')).rejects.toMatchObject({ code: 'not_found' })
    await world.files.write('/workspace/data/notes.md', 'a file beside it')

    expect((await world.files.list('/workspace/data')).entries.map(({ path }) => path)).toEqual([
      '/workspace/data/notes.md',
    ])
  })

  test('a link that the application gave leads to the same file: what stands beside the real one is not there', async () => {
    const world = workspace(hasProc)
    const real = path.join(world.folder, 'real.db')
    sqliteStore(real).close()
    symlinkSync(real, path.join(path.dirname(world.folder), 'link.db'))
    const store = sqliteStore(path.join(path.dirname(world.folder), 'link.db'))
    onTestFinished(() => store.close())

    await expectMissing(world, ['real.db', 'real.db-wal', 'real.db-journal'])
  })

  test('a store of JSON, copies of sessions, recordings and memories are not there', async () => {
    const world = workspace(hasProc)
    const { folder } = world
    const store = jsonStore(path.join(folder, 'store'))
    const sessions = jsonSession(path.join(folder, 'sessions'))
    const memory = memoryTools({ directory: path.join(folder, 'memory') })
    const model = scriptedModel([
      { calls: [{ name: 'memory_remember', input: { category: 'c', text: SECRET } }] },
      'done',
    ])
    const runtime = createRuntime({ store })
    const recording = record(runtime, path.join(folder, 'run.jsonl'))
    const { conversationId } = await recording.run(agent({ name: 'a', instructions: '', model, tools: memory }), SECRET)
      .result
    await sessions.save({ session_id: conversationId } as never)
    await recording.close()
    expect(readdirSync(folder).sort()).toEqual(['memory', 'run.jsonl', 'sessions', 'store'])
    expect(readFileSync(path.join(folder, 'store/store.journal'), 'utf8')).toContain(SECRET)
    expect(readFileSync(path.join(folder, 'memory/c.jsonl'), 'utf8')).toContain(SECRET)

    const below = ['store/store.journal', 'store/package.json', `sessions/${conversationId}.json`, 'memory/c.jsonl']
    await expectMissing(world, ['store', 'sessions', 'memory', 'run.jsonl', ...below])

    renameSync(path.join(folder, 'store'), path.join(folder, 'moved'))
    await expectMissing(world, ['moved', 'moved/store.journal', 'store', 'store/store.journal'])
    renameSync(path.join(folder, 'moved/store.journal'), path.join(folder, 'journal'))
    await expectMissing(world, ['journal'])
    expect((await world.files.list('/workspace')).entries).toEqual([])
  })

  test('memories are not there before the first call of a memory tool, whether their folder is there or comes later', async () => {
    const world = workspace()
    const { folder } = world
    const was = path.join(folder, 'was')
    mkdirSync(was, { recursive: true })
    writeFileSync(path.join(was, 'c.jsonl'), SECRET)
    memoryTools({ directory: was })
    await expectMissing(world, ['was', 'was/c.jsonl'])
    const later = path.join(folder, 'deep', 'later')
    const { memory_remember } = memoryTools({ directory: later })
    await expect(world.files.write('/workspace/deep/later/c.jsonl', 'x')).rejects.toMatchObject({ code: 'not_found' })
    expect(existsSync(later)).toBe(false)
    const model = scriptedModel([
      { calls: [{ name: 'memory_remember', input: { category: 'c', text: SECRET } }] },
      'done',
    ])
    await createRuntime().run(agent({ name: 'a', instructions: '', model, tools: { memory_remember } }), 'go').result
    await expectMissing(world, ['deep/later', 'deep/later/c.jsonl'])
    renameSync(later, path.join(folder, 'moved'))
    await expectMissing(world, ['moved', 'moved/c.jsonl'])
  })

  test('an area that is such a folder has nothing in it, and says why', async () => {
    const folder = path.join(tempFolder(), 'store')
    const store = jsonStore(folder)
    onTestFinished(() => store.close())
    const files = new FileDomain(new DiskBackend(resolveAreas({ workspace: folder }), hasProc), {}).open(GRANT)

    const why = 'its area is a folder of the runtime itself'
    await expect(files.list('/workspace')).rejects.toThrow(why)
    await expect(files.readText('/workspace/store.journal')).rejects.toThrow(why)
    await expect(files.write('/workspace/a', '')).rejects.toThrow(why)
  })

  test('a file that is born later is not a file of the runtime, although it has the same inode', async () => {
    const world = workspace(hasProc)
    const file = path.join(world.folder, 'token')
    const reused: boolean[] = []
    for (let time = 0; time < 20; time++) {
      writeFileSync(file, 'token')
      ownFile(file, 'a token')
      const { ino } = statSync(file)
      rmSync(file)
      await world.files.write(`/workspace/note-${time}`, 'a note')
      reused.push(statSync(path.join(world.folder, `note-${time}`)).ino === ino)
      expect(await world.files.readText(`/workspace/note-${time}`)).toBe('a note')
    }
    expect(reused.length).toBe(20)
  })
})

test('every tool that lists or searches leaves them out', async () => {
  const { folder } = workspace()
  writeFileSync(path.join(folder, 'serve.token'), SECRET)
  ownFile(path.join(folder, 'serve.token'), 'a token')
  mkdirSync(path.join(folder, 'state'))
  writeFileSync(path.join(folder, 'state/deep.txt'), SECRET)
  ownFolder(path.join(folder, 'state'), 'a folder')
  writeFileSync(path.join(folder, 'plain.txt'), 'nothing of lgt_ here')
  const calls = [
    { name: 'list_directory', input: { path: '/workspace' } },
    { name: 'list_directory_with_sizes', input: { path: '/workspace' } },
    { name: 'search_files', input: { path: '/workspace', pattern: '*' } },
    { name: 'read_multiple_files', input: { paths: ['/workspace/serve.token', '/workspace/state/deep.txt'] } },
    { name: 'get_file_info', input: { path: '/workspace/serve.token' } },
    { name: 'search_text', input: { text: 'lgt_' } },
    { name: 'tree', input: {} },
  ]
  const model = scriptedModel([{ calls }, 'done'])
  await using runtime = createRuntime({ files: diskFiles({ workspace: folder }) })
  const tools = { ...fileTools(), search_text: searchTextTool(), tree: treeTool() }
  const grant = { use: ['tool:*', 'model:*', 'file.*:/workspace/**'] }

  await runtime.run(agent({ name: 'a', instructions: '', model, tools, grant }), 'look').result

  const said = model.requests.at(-1)?.messages.flatMap((one) => (one.role === 'tool' ? [one.content] : [])) ?? []
  const missing = (path: string) => `## ${path} (error)\nPath not found: ${path}`
  expect(said).toEqual([
    '[FILE] plain.txt',
    expect.stringContaining('total: 1 entries; files=1, dirs=0'),
    '/workspace/plain.txt',
    [missing('/workspace/serve.token'), missing('/workspace/state/deep.txt')].join('\n\n'),
    expect.stringContaining('Path not found: /workspace/serve.token'),
    '/workspace/plain.txt:1: nothing of lgt_ here',
    'plain.txt (20)',
  ])
})

test('neither a recipe nor a part of one is read from them', async () => {
  const { folder } = workspace()
  const recipe = (prompt: string) => `title: T\ndescription: D\nprompt: |\n  ${prompt}\n`
  mkdirSync(path.join(folder, '.legate/recipes'), { recursive: true })
  writeFileSync(path.join(folder, '.legate/recipes/own.yaml'), recipe(SECRET))
  writeFileSync(path.join(folder, 'own.txt'), SECRET)
  writeFileSync(path.join(folder, '.legate/recipes/shown.yaml'), recipe('{% include "../../own.txt" %}'))
  writeFileSync(path.join(folder, '.legate/recipes/near.txt'), SECRET)
  writeFileSync(path.join(folder, '.legate/recipes/near.yaml'), recipe('{% include "near.txt" %}'))
  for (const name of ['own.txt', '.legate/recipes/own.yaml', '.legate/recipes/near.txt'])
    ownFile(path.join(folder, name), 'own')
  linkSync(path.join(folder, 'own.txt'), path.join(folder, '.legate/recipes/linked.txt'))
  writeFileSync(path.join(folder, '.legate/recipes/linked.yaml'), recipe('{% include "linked.txt" %}'))
  const calls = ['own', 'near', 'linked', 'shown'].map((source) => ({
    name: 'delegate',
    input: { source, instructions: 'go' },
  }))
  const model = delegating(calls, () => 'done')
  await using runtime = createRuntime({ files: diskFiles({ workspace: folder }) })
  const tools = openSubagents({ cwd: folder, surfaces: ['delegate'], discover: true })
  const grant = { use: ['tool:*', 'model:*', 'agent:*', 'file.*:/workspace/**'] }

  await runtime.run(agent({ name: 'host', instructions: '', model, tools, grant }), 'go').result

  const seen = JSON.stringify(model.requests)
  expect(seen).toContain('• near (recipe)')
  expect(seen).not.toContain(SECRET)
  expect(seen).not.toContain('• own (recipe)')
  const results = model.requests.at(-1)?.messages.flatMap((one) => (one.role === 'tool' ? [one.content] : []))
  expect(results).toHaveLength(4)
  for (const said of results ?? []) expect(said).toContain('Error')
})

test.runIf(HAS_PROC)(
  'nothing of them is read or lost while another process swaps them with ordinary files',
  { timeout: 60_000 },
  async () => {
    const { folder, files } = workspace()
    for (const name of ['dir', 'other']) mkdirSync(path.join(folder, name))
    writeFileSync(path.join(folder, 'dir/own'), SECRET)
    ownFile(path.join(folder, 'dir/own'), 'own')
    writeFileSync(path.join(folder, 'plain'), 'plain')
    const swap = `
      const fs = require('node:fs'); process.chdir(${JSON.stringify(folder)}); process.stdout.write('ready')
      const t = (f) => { try { f() } catch {} }
      for (;;) {
        t(() => fs.renameSync('dir/own', 'target')); t(() => fs.renameSync('target', 'dir/own'))
        t(() => fs.renameSync('dir', 'gone')); t(() => fs.renameSync('other', 'dir'))
        t(() => fs.renameSync('dir', 'other')); t(() => fs.renameSync('gone', 'dir'))
      }`
    const swapper = spawn(process.execPath, ['-e', swap], { stdio: ['ignore', 'pipe', 'inherit'] })
    onTestFinished(() => void swapper.kill('SIGKILL'))
    await new Promise((resolve) => swapper.stdout.once('data', resolve))
    const end = Date.now() + 1_500
    const seen = new Set<string>()
    let tries = 0
    const attack = async (name: string) => {
      while (Date.now() < end) {
        const read = await files.readText(`/workspace/${name}`).catch((error: LegateError) => error.code)
        seen.add(read)
        const list = await files.list('/workspace/dir').catch(() => undefined)
        for (const entry of list?.entries ?? []) seen.add(entry.path)
        tries++
      }
    }
    await Promise.all(['target', 'dir/own', 'gone/own', 'other/own'].map(attack))
    swapper.kill('SIGKILL')
    await new Promise((resolve) => swapper.once('exit', resolve))

    expect(tries).toBeGreaterThan(100)
    expect([...seen].filter((text) => text.includes('canary') || text.includes('own'))).toEqual([])
    const left = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) =>
      existsSync(path.join(folder, name)),
    )
    const texts = left
      .filter((name) => statSync(path.join(folder, name)).isFile())
      .map((name) => readFileSync(path.join(folder, name), 'utf8'))
    expect(texts).toContain(SECRET)
  },
)
