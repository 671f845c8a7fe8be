import { type AnyAgent, agent, type Grant, type Json } from 'legate'
import { scriptedModel } from 'legate/testing'
import { fileTools, memoryFiles } from 'legate/tools'
import { describe, expect, test } from 'vitest'
import { useWorld } from '../support/agents.ts'
import { makeGate } from '../support/gate.ts'
import { lasting } from '../support/stores.ts'

const READ = { name: 'read_text_file', input: { path: '/workspace/a/plan.md' } }
const WRITE = { name: 'write_file', input: { path: '/workspace/a/plan.md', content: 'mine' } }
const OTHER = { name: 'read_text_file', input: { path: '/workspace/b/secret.md' } }
const HOST: Grant = { use: ['tool:*', 'agent:*', 'model:*', 'file.*:/workspace/a/**'] }

/** Makes these calls, and then says what came of them, one a line, after the names of its tools. */
const tries = (...calls: readonly { name: string; input: Json }[]) =>
  scriptedModel(({ messages, tools }) => {
    const results = messages.flatMap((message) => (message.role === 'tool' ? [String(message.content)] : []))
    if (results.length === 0 && calls.length > 0) return { calls }
    return [tools.map(({ name }) => name).join(' '), ...results.map((result) => result.split('\n').at(-1))].join('\n')
  })

describe.each(lasting)('files of the host, on %s', (_, create) => {
  const { start } = useWorld(create)
  const files = () => memoryFiles({ workspace: { 'a/plan.md': 'A', 'b/secret.md': 'B' } })
  const { read_text_file, write_file, list_directory } = fileTools()

  const hostOf = (child: AnyAgent, options: { files?: 'inherit'; grant?: Grant } = {}, grant = HOST) =>
    agent({
      name: 'host',
      instructions: '',
      tools: { read_text_file, write_file },
      grant,
      subagents: { help: { agent: child, ...options } },
      model: scriptedModel(({ messages }) => {
        const said = messages.find(({ role }) => role === 'tool')
        return said === undefined
          ? { calls: [{ name: 'help', input: { message: 'go' } }] }
          : String(said.content).replace(/^session_id: .*\n\n/, '')
      }),
    })

  const helper = (options: { grant?: Grant; files?: 'inherit' } = {}, model = tries(READ, WRITE, OTHER)) =>
    agent({ name: 'helper', instructions: '', model, ...options })

  const textOf = async (host: AnyAgent) => {
    const { runtime } = start({ files: files() })
    const { text } = await runtime.run(host as never, 'go' as never).result
    await runtime.close()
    return text.split('\n')
  }

  test('are not a child’s unless it inherits them', async () => {
    const [tools, ...came] = await textOf(hostOf(helper()))
    expect(tools).toBe('')
    expect(came.every((text) => text.startsWith('There is no tool'))).toBe(true)
  })

  test.each([
    ['the setting of its host', () => hostOf(helper(), { files: 'inherit' })],
    ['its own definition', () => hostOf(helper({ files: 'inherit' }))],
  ])('are a child’s by %s: the file tools its host has, as far as its host goes', async (_way, host) => {
    expect(await textOf(host())).toEqual([
      'read_text_file write_file',
      'line1: A',
      'wrote 4 bytes to /workspace/a/plan.md',
      'read_text_file is not allowed here: no rule of host allows file.read:/workspace/b/secret.md.',
    ])
  })

  test('are narrowed by what the host passes on, by the setting and by the child’s own grant', async () => {
    const passing = { ...HOST, delegate: ['tool:*', 'model:*', 'file.read:/workspace/**'] }
    const setting: Grant = { deny: ['file.write:**'] }
    const own: Grant = { use: ['tool:*', 'model:*', 'file.read:/workspace/**'] }
    for (const [offered, host] of [
      ['read_text_file write_file', hostOf(helper({ files: 'inherit' }), {}, passing)],
      ['read_text_file', hostOf(helper({ files: 'inherit' }), { grant: setting })],
      ['read_text_file write_file', hostOf(helper({ files: 'inherit', grant: own }))],
    ] as const) {
      const [tools, read, write] = await textOf(host)
      expect([tools, read]).toEqual([offered, 'line1: A'])
      expect(write).toMatch(/^write_file is not allowed here/)
    }
  })

  test('are passed on to grandchildren that inherit them, and an own tool of the same name stays', async () => {
    const grandchild = helper({ files: 'inherit' }, tries(READ))
    const middle = agent({
      name: 'middle',
      instructions: '',
      files: 'inherit',
      tools: { list_directory },
      subagents: { down: grandchild },
      model: scriptedModel(({ messages }) => {
        const said = messages.find(({ role }) => role === 'tool')
        return said === undefined
          ? { calls: [{ name: 'down', input: { message: 'go' } }] }
          : String(said.content).replace(/^session_id: .*\n\n/, '')
      }),
    })
    const [tools, read] = await textOf(hostOf(middle))
    expect(tools?.split(' ').sort()).toEqual(['list_directory', 'read_text_file', 'write_file'])
    expect(read).toBe('line1: A')
  })

  test('are still a child’s after a restart in the middle', async () => {
    const entered = makeGate()
    const stuck = scriptedModel(() => {
      entered.open()
      return makeGate().opened.then(() => 'never')
    })
    const first = start({ files: files(), mayFail: true })
    const run = first.runtime.run(hostOf(helper({ files: 'inherit' }, stuck)), 'go')
    run.result.catch(() => undefined)
    await entered.opened
    await first.runtime.close()

    const second = start({ files: files(), agents: [hostOf(helper({ files: 'inherit' }, tries(READ)))] })
    const [resumed] = await second.runtime.resume()
    expect((await resumed?.result)?.text).toBe('read_text_file write_file\nline1: A')
  })

  test('are code’s too, as context.files; at the root there is no host to inherit from', async () => {
    const reader = agent({
      name: 'reader',
      files: 'inherit',
      reply: async (_message, { files: own }) => {
        const read = (path: string) => own.readText(path).catch(() => 'denied')
        return `${await read('/workspace/a/plan.md')}, ${await read('/workspace/b/secret.md')}`
      },
    })
    expect(await textOf(hostOf(reader))).toEqual(['A, denied'])
    expect(await textOf(reader)).toEqual(['denied, denied'])
  })

  test('are refused by another word', () => {
    expect(() => helper({ files: 'all' as never })).toThrow(/files must be one of "inherit", not "all"/)
    expect(() => hostOf(helper(), { files: true as never })).toThrow(/files must be one of "inherit", not true/)
  })
})
