// `legate acp` as a process: an editor comes back after its agent was killed.

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import path from 'node:path'
import { Readable, Writable } from 'node:stream'
import * as acp from '@agentclientprotocol/sdk'
import { beforeEach, expect, onTestFinished, test } from 'vitest'
import { agentsModule, Place, program, skipUnlessBuilt, until } from '../../cli/support/cli.ts'
import { serveModel } from '../../cli/support/model-server.ts'
import { project } from '../../cli/support/project.ts'

beforeEach(skipUnlessBuilt)

/** An editor with an agent process of its own. */
class EditorProcess {
  readonly child: ChildProcess
  readonly agent: acp.ClientContext
  readonly asked: acp.RequestPermissionRequest[] = []
  text = ''

  constructor(
    place: Place,
    choice: 'allow_once' | 'wait',
    words: readonly string[] = ['-m', agentsModule, '--agent', 'careful'],
  ) {
    const args = [program, 'acp', ...words]
    const child = spawn(process.execPath, args, {
      env: place.env,
      cwd: place.folder,
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    this.child = child
    const editor = acp
      .client({ name: 'test' })
      .onNotification(acp.methods.client.session.update, ({ params: { update } }) => {
        if (update.sessionUpdate !== 'agent_message_chunk' || update.content.type !== 'text') return
        this.text += update.content.text
      })
      .onRequest(acp.methods.client.session.requestPermission, async ({ params, signal }) => {
        this.asked.push(params)
        if (choice === 'wait') await new Promise((resolve) => signal.addEventListener('abort', resolve))
        return { outcome: { outcome: 'selected' as const, optionId: 'allow_once' } }
      })
    const output = Writable.toWeb(child.stdin) as WritableStream<Uint8Array>
    const input = Readable.toWeb(child.stdout) as ReadableStream<Uint8Array>
    const connection = editor.connect(acp.ndJsonStream(output, input))
    connection.closed.catch(() => undefined)
    this.agent = connection.agent
    onTestFinished(() => {
      child.kill('SIGKILL')
    })
  }

  begin() {
    return this.agent.request(acp.methods.agent.initialize, { protocolVersion: 1, clientCapabilities: {} })
  }
}

test('killed while a permission waits, a loaded session asks again, and its run ends', async () => {
  const place = new Place()
  place.open()
  const first = new EditorProcess(place, 'wait')
  expect(await first.begin()).toMatchObject({ protocolVersion: 1, agentCapabilities: { loadSession: true } })
  const { sessionId } = await first.agent.request(acp.methods.agent.session.new, { cwd: place.folder, mcpServers: [] })
  const prompt = [{ type: 'text' as const, text: 'Go.' }]
  first.agent.request(acp.methods.agent.session.prompt, { sessionId, prompt }).catch(() => undefined)
  await until('it asks', () => first.asked.length > 0)
  first.child.kill('SIGKILL')
  await once(first.child, 'exit')
  const second = new EditorProcess(place, 'allow_once')
  await second.begin()
  await second.agent.request(acp.methods.agent.session.load, { sessionId, cwd: place.folder, mcpServers: [] })
  await until('the run ends', () => second.text !== '')
  expect(second.asked.map(({ toolCall }) => toolCall.toolCallId)).toEqual([first.asked[0]?.toolCall.toolCallId])
  const { sessions } = await second.agent.request(acp.methods.agent.session.list, {})
  expect(sessions.map((one) => one.sessionId)).toEqual([sessionId])
})

const noter = path.join(import.meta.dirname, 'programs/noter.mjs')

test('a session works in its own folder, whoever answers and whichever folder is open', async () => {
  const place = new Place()
  const [here, there] = ['a', 'b'].map((name) => path.join(place.folder, name)) as [string, string]
  for (const folder of [here, there]) mkdirSync(folder)
  const { session } = acp.methods.agent
  const ask = async (editor: EditorProcess) => {
    const before = editor.asked.length
    await editor.begin()
    await editor.agent.request(session.new, { cwd: here, mcpServers: [] })
    const { sessionId } = await editor.agent.request(session.new, { cwd: there, mcpServers: [] })
    const prompt = [{ type: 'text' as const, text: 'Go.' }]
    const prompted = editor.agent.request<acp.PromptResponse>(session.prompt, { sessionId, prompt })
    prompted.catch(() => undefined)
    await until('it asks', () => editor.asked.length > before)
    return { sessionId, prompted, node: String(editor.asked.at(-1)?.toolCall.toolCallId) }
  }
  const allow = async (node: string) => {
    const [waiting] = await place.runtime().approvals()
    await place.run(['approve', node, '--seen', String(waiting?.seen)])
  }
  const first = new EditorProcess(place, 'wait', ['-m', noter])
  const live = await ask(first)
  await allow(live.node)
  expect(await live.prompted).toMatchObject({ stopReason: 'end_turn' })
  expect([readdirSync(here), readdirSync(there)]).toEqual([[], ['note.txt']])
  const list = async (cwd: string) => (await first.agent.request(session.list, { cwd })).sessions
  expect(await list(here)).toEqual([])
  expect(await list(there)).toMatchObject([{ sessionId: live.sessionId, cwd: there }])
  const load = { sessionId: live.sessionId, cwd: here, mcpServers: [] }
  await expect(first.agent.request(session.load, load)).rejects.toThrow(there)
  rmSync(path.join(there, 'note.txt'))
  const left = await ask(first)
  first.child.kill('SIGKILL')
  await once(first.child, 'exit')
  const second = new EditorProcess(place, 'wait', ['-m', noter])
  await second.begin()
  await second.agent.request(session.new, { cwd: here, mcpServers: [] })
  await allow(left.node)
  await second.agent.request(session.load, { sessionId: left.sessionId, cwd: there, mcpServers: [] })
  await until('it goes on where it belongs', () => second.text.endsWith('Done.'))
  expect([readdirSync(here), readdirSync(there)]).toEqual([[], ['note.txt']])
})

/** A folder whose Claude file frees every shell script, as somebody else could have written it, and a model that uses that. */
async function opened(): Promise<Place> {
  const head = '---\nname: reviewer\ndescription: Reviews\ntools: Read, Bash(sh:*), Bash(touch:*)\n---\n'
  const place = project({ '.claude/agents/reviewer.md': `${head}\nYou review.\n` })
  await serveModel(place, (mock) => {
    const toolCalls = [{ id: 'c', name: 'shell', arguments: JSON.stringify({ command: 'touch PWNED' }) }]
    mock.on({ predicate: ({ messages }) => messages.every(({ role }) => role !== 'tool') }, { toolCalls })
    mock.on({}, { content: 'Done.' })
  })
  return place
}

test('the files of an opened folder choose no command that runs without asking, unless --allow names it', async () => {
  const { session } = acp.methods.agent
  const tried = async (...more: string[]) => {
    const place = await opened()
    const editor = new EditorProcess(place, 'wait', ['reviewer', ...more])
    await editor.begin()
    const { sessionId } = await editor.agent.request(session.new, { cwd: place.folder, mcpServers: [] })
    const prompt = [{ type: 'text' as const, text: 'Go.' }]
    editor.agent.request(session.prompt, { sessionId, prompt }).catch(() => undefined)
    const pwned = () => existsSync(path.join(place.folder, 'PWNED'))
    await until('it asks or did it', () => editor.asked.length > 0 || pwned())
    return [editor.asked[0]?.toolCall.title, pwned()]
  }
  expect(await tried()).toEqual(['exec:touch PWNED for shell', false])
  expect(await tried('--allow', 'exec:touch PWNED')).toEqual([undefined, true])
})

test('a session in a folder that is not there is refused, and makes none', async () => {
  const place = new Place()
  place.open()
  const editor = new EditorProcess(place, 'wait')
  await editor.begin()
  const cwd = path.join(place.folder, 'missing')
  const begun = editor.agent.request(acp.methods.agent.session.new, { cwd, mcpServers: [] })
  await expect(begun).rejects.toThrow(`There is no folder ${cwd}`)
  expect(existsSync(cwd)).toBe(false)
})

test('which agent is meant must be said', async () => {
  const { code, stderr } = await new Place().legate(['acp', agentsModule]).ended
  expect(code).toBe(2)
  expect(stderr).toContain('Choose one with --agent')
  const unknown = await new Place().legate(['acp', agentsModule, '--agent', 'nobody']).ended
  expect([unknown.code, unknown.stderr]).toEqual([2, expect.stringContaining('There is no agent "nobody".')])
})
