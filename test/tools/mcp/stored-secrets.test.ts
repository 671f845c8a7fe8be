import { existsSync, readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { createRuntime } from 'legate'
import { recipeAgent } from 'legate/recipe'
import { jsonStore } from 'legate/store/json'
import { sqliteStore } from 'legate/store/sqlite'
import { record, scriptedModel } from 'legate/testing'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { LocalStore } from '../../../src/core/store/store.ts'
import { Place, program } from '../../cli/support/cli.ts'
import { folderWith } from '../../recipe/support/folder.ts'
import { listen } from './support.ts'

const PROGRAM = path.join(import.meta.dirname, 'programs/server.mjs')
const SECRET = 'hush-4711-of-mine'
const FORMS = [SECRET, Buffer.from(SECRET).toString('base64').replace(/=+$/, ''), encodeURIComponent(`${SECRET}!`)]
const KEY = `$${'{'}LEGATE_PAT}`
const CALLS = ['split', 'failing', 'telling', 'blob', 'structured', 'link', 'list_resources', 'list_prompts']

const STORES: readonly (readonly [string, (folder: string) => LocalStore])[] = [
  ['sqlite', (folder) => sqliteStore(path.join(folder, 'runs.db'))],
  ['json', (folder) => jsonStore(path.join(folder, 'runs'))],
]

/** Every byte of every file below. */
function bytesIn(folder: string): string {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  return files.map((entry) => readFileSync(path.join(entry.parentPath, entry.name)).toString('latin1')).join('\n')
}

function agentFile(url: string): string {
  const stdio = `{command: node, args: ["${PROGRAM}", leaky], env: {API_TOKEN: "${KEY}"}}`
  const http = `{url: "${url}?key=${KEY}", headers: {Authorization: "Bearer ${KEY}"}}`
  const text = `---\nname: helper\ndescription: Helps\nmcpServers:\n  odd: ${stdio}\n  far: ${http}\n---\nYou help.\n`
  return path.join(folderWith({ '.claude/agents/helper.md': text }), '.claude/agents/helper.md')
}

describe('of the value of a secret nothing is stored', () => {
  test.each(STORES)(
    'on %s: not in a byte of the store, an export or a recording, nor in what commands show',
    async (name, open) => {
      vi.stubEnv('LEGATE_PAT', SECRET)
      onTestFinished(() => void vi.unstubAllEnvs())
      const { url, seen } = await listen((request, response) =>
        response.writeHead(401).end(`who is ${request.headers.authorization} at ${request.url}?`),
      )
      const place = new Place()
      const model = scriptedModel([...CALLS.map((name) => ({ calls: [{ name: `odd__${name}`, input: {} }] })), 'Done.'])
      const runtime = record(createRuntime({ store: open(place.folder), model }), path.join(place.folder, 'tape.jsonl'))
      const grant = { use: ['tool:*', 'model:*', 'exec:*', 'net:*', 'secret:*'], ask: ['exec:*', 'net:*', 'secret:*'] }
      const file = agentFile(url)
      const run = runtime.run(await recipeAgent(file, { grant }), 'Go.')
      const shown: unknown[] = []
      for await (const event of run) {
        shown.push(event, await runtime.approvals())
        if (event.type === 'approval-request') await runtime.answer(event.nodeId ?? '', { allow: true, always: true })
      }
      const outcome = await run.result
      const lines: unknown[] = []
      for await (const line of runtime.export(run.conversationId)) lines.push(line)
      await runtime.close()

      expect(seen[0]).toMatchObject({ authorization: `Bearer ${SECRET}`, path: expect.stringContaining(SECRET) })
      expect(outcome).toMatchObject({ status: 'completed', toolCalls: CALLS.length, absent: [{ name: 'far' }] })
      const stored = bytesIn(place.folder)
      expect(stored).toContain('LEGATE_PAT')
      for (const form of FORMS) expect([stored, JSON.stringify([shown, outcome, lines])].join()).not.toContain(form)
      if (name !== 'sqlite' || !existsSync(program)) return
      for (const words of [
        ['show', run.id],
        ['log', run.id],
        ['explain', file],
        ['validate', file],
      ]) {
        const { stdout, stderr } = await place.run(words, { env: { LEGATE_PAT: SECRET } })
        expect(`${stdout}${stderr}`).toMatch(/helper/)
        expect(`${stdout}${stderr}`, words.join(' ')).not.toContain(SECRET)
      }
    },
  )
})
