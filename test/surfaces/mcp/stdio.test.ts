// `legate mcp` as a process: the official client, and a kill in the middle of a task.

import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { beforeEach, expect, onTestFinished, test } from 'vitest'
import { agentsModule, Place, program, skipUnlessBuilt } from '../../cli/support/cli.ts'
import { commandsIn, wordsOf } from '../../cli/support/printed.ts'
import { project } from '../../cli/support/project.ts'
import { type Answer, type Forms, message, newClient, textIn } from './support/clients.ts'

beforeEach(skipUnlessBuilt)

/** The official client with a server of its own. */
async function clientOf(place: Place, args: readonly string[], forms?: Forms, mode: 'auto' | 'legacy' = 'auto') {
  const client = newClient(forms, mode)
  const env = place.env as Record<string, string>
  await client.connect(
    new StdioClientTransport({ command: process.execPath, args: [program, 'mcp', ...args], env, cwd: place.folder }),
  )
  return client
}

test('agents of a module are tools over stdio', async () => {
  const place = new Place()
  place.open()
  const client = await clientOf(place, [agentsModule])
  const { tools } = await client.listTools()
  expect(tools.map(({ name }) => name)).toEqual(expect.arrayContaining(['lead', 'typed', 'run_get', 'run_wait']))
  expect(tools.map(({ name }) => name)).not.toContain('run_answer')
  const result = await client.callTool({ name: 'lead', arguments: { message: 'Go.' } })
  expect(textIn(result)).toContain('All of them saw it: 2.')
})

test('a client sees runs of the agents that it is offered, and no others of this user', async () => {
  const place = new Place()
  place.open()
  const wide = await clientOf(place, [agentsModule])
  const { _meta } = await wide.callTool({ name: 'talker', arguments: { message: 'Go.' } })
  const { runId } = Object(_meta)['legate/run'] as { runId: string }
  const uri = `legate://runs/${runId}`
  expect((await wide.readResource({ uri })).contents).toHaveLength(1)
  await wide.close()
  const narrow = await clientOf(place, [path.join(import.meta.dirname, '../acp/programs/noter.mjs')])

  expect((await narrow.listResources()).resources).toEqual([])
  await expect(narrow.readResource({ uri })).rejects.toThrow('not found')
  expect((await narrow.callTool({ name: 'run_get', arguments: { run_id: runId } })).isError).toBe(true)
})

test('with --approve the person at a client of the older revision is asked', async () => {
  const place = new Place()
  place.open()
  const asked: string[] = []
  const forms: Forms = (said) => {
    asked.push(said)
    return { action: 'accept', content: { decision: 'allow_once' } }
  }
  const client = await clientOf(place, [agentsModule, '--approve'], forms, 'legacy')
  const result = await client.callTool({ name: 'careful', arguments: { message: 'Go.' } })
  expect(result.isError ?? false).toBe(false)
  expect(asked.length).toBeGreaterThan(0)
})

test('a run that waits for a person names the command that answers, with the store; it works in another folder', async () => {
  const place = new Place()
  place.open()
  place.more['LEGATE_DB'] = ''
  const client = await clientOf(place, [agentsModule, '--store', 'own runs.db'])
  const waiting = await client.callTool({ name: 'careful', arguments: { message: 'Go.' } })
  const [command = ''] = commandsIn(textIn(waiting))
  expect(command).toMatch(/^legate approvals \w{8} --store '\/.*\/own runs\.db'$/)

  const listed = await place.run(wordsOf(command, {}), { cwd: '/' })
  const [approve = ''] = commandsIn(listed.stdout)
  expect(await place.run(wordsOf(approve, {}), { cwd: '/' })).toMatchObject({ code: 0 })
  const { runId } = Object(waiting._meta)['legate/run'] as { runId: string }
  expect(textIn(await client.callTool({ name: 'run_wait', arguments: { run_id: runId } }))).toContain('It is blue.')
})

test('a recipe is a prompt with its parameters, and one that needs values is a prompt only', async () => {
  const recipe = [
    'version: 1.0.0',
    'title: Release notes',
    'description: Writes release notes.',
    'prompt: Write notes for {{ product }} in {{ tone }}.',
    'parameters:',
    '  - { key: product, input_type: string, requirement: required, description: What to release }',
    '  - { key: tone, input_type: select, requirement: optional, default: dry, description: How, options: [dry, warm] }',
  ]
  const place = project({ 'notes.yaml': `${recipe.join('\n')}\n` })
  const client = await clientOf(place, ['notes.yaml'])
  expect((await client.listPrompts()).prompts).toMatchObject([
    {
      name: 'release_notes',
      title: 'Release notes',
      arguments: [{ name: 'product', required: true }, { name: 'tone' }],
    },
  ])
  const { messages } = await client.getPrompt({ name: 'release_notes', arguments: { product: 'Legate', tone: 'warm' } })
  expect(messages[0]?.content).toEqual({ type: 'text', text: 'Write notes for Legate in warm.' })
  const ref = { type: 'ref/prompt', name: 'release_notes' } as const
  const { completion } = await client.complete({ ref, argument: { name: 'tone', value: 'w' } })
  expect(completion.values).toEqual(['warm'])
  await expect(client.getPrompt({ name: 'release_notes', arguments: {} })).rejects.toThrow('"product" is missing')
})

test('a task survives kill -9 of its server: the next one goes on, and gives its result', async () => {
  const place = new Place()
  const first = new RawServer(place)
  const { result } = await first.ask('tools/call', { name: 'lead', arguments: { message: 'Go.' } })
  expect(result).toMatchObject({ resultType: 'task', status: 'working' })
  const taskId = String(result?.['taskId'])
  first.child.kill('SIGKILL')
  await once(first.child, 'exit')
  place.open()
  const second = new RawServer(place)
  for (;;) {
    const { result: task } = await second.ask('tasks/get', { taskId })
    if (task?.['status'] === 'working') continue
    expect(task).toMatchObject({ status: 'completed' })
    expect(textIn(task?.['result'] as never)).toContain('All of them saw it: 2.')
    break
  }
  const unknown = await second.ask('tasks/get', { taskId: '01890000-0000-7000-8000-00000000dead' })
  expect(unknown.error?.code).toBe(-32_602)
})

test('what cannot be offered is said in one line', async () => {
  const { code, stderr } = await new Place().legate(['mcp']).ended
  expect(code).toBe(2)
  expect(stderr).toContain('Name what to offer')
})

/** A server of `legate mcp`, and a client with Tasks that writes its messages itself. */
class RawServer {
  readonly child: ChildProcessWithoutNullStreams
  private readonly answers: Map<number, (answer: Answer) => void> = new Map()

  constructor(place: Place) {
    const args = [program, 'mcp', agentsModule, '--store', place.store]
    this.child = spawn(process.execPath, args, { env: place.env, cwd: path.dirname(place.store) })
    onTestFinished(() => void this.child.kill('SIGKILL'))
    createInterface({ input: this.child.stdout }).on('line', (line) => {
      const answer = JSON.parse(line) as Answer & { readonly id?: number }
      this.answers.get(answer.id ?? 0)?.(answer)
    })
  }

  ask(method: string, params: Parameters<typeof message>[1]): Promise<Answer> {
    const sent = message(method, params)
    const answered = new Promise<Answer>((resolve) => this.answers.set(sent.id, resolve))
    this.child.stdin.write(`${JSON.stringify(sent)}\n`)
    return answered
  }
}
