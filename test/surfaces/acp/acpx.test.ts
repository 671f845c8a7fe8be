// acpx, a client of ACP that others made, against `legate acp`. It needs Node 22: see `scripts/protocols.mjs`.

import { readdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { agentsModule, Place, program, root, skipUnlessBuilt } from '../../cli/support/cli.ts'
import { foreignFolder, foreignProgram } from '../support/foreign-program.ts'

const noter = path.join(import.meta.dirname, 'programs/noter.mjs')

describe.skipIf(foreignFolder === '')('acpx', { timeout: 60_000 }, () => {
  beforeEach(skipUnlessBuilt)

  /** Says one thing, and gives every message of the protocol. */
  const say = async (place: Place, options: readonly string[], args: readonly string[]) => {
    const command = [process.execPath, program, 'acp', ...args].map((word) => JSON.stringify(word)).join(' ')
    const all = ['--format', 'json', '--cwd', place.folder, ...options, '--agent', command, 'exec', 'Go.']
    const { stdout } = await foreignProgram('acpx/dist/cli.js', all, { ...place.env, HOME: place.folder })
    return stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Message)
  }

  test('prompts, allows what is asked for, and reads the end', async () => {
    const place = new Place()
    const messages = await say(place, ['--approve-all'], ['-m', noter])
    expect(messages.filter(({ method }) => method === 'session/request_permission')).toHaveLength(1)
    expect(messages.findLast(({ result }) => result?.['stopReason'] !== undefined)?.result?.['stopReason']).toBe(
      'end_turn',
    )
    expect(readdirSync(place.folder)).toContain('note.txt')
  })

  test('denies what is asked for, and nothing was written', async () => {
    const place = new Place()
    await say(place, ['--deny-all'], ['-m', noter])
    expect(readdirSync(place.folder)).not.toContain('note.txt')
  })

  test('hands over its MCP servers, whose start it is asked for', async () => {
    const place = new Place()
    place.open()
    const config = path.join(place.folder, 'mcp.json')
    const server = path.join(root, 'node_modules/@modelcontextprotocol/server-everything/dist/index.js')
    const mcpServers = [{ name: 'sums', type: 'stdio', command: process.execPath, args: [server, 'stdio'], env: [] }]
    writeFileSync(config, JSON.stringify({ mcpServers }))
    const args = ['-m', agentsModule, '--agent', 'talker']
    const messages = await say(place, ['--approve-all', '--mcp-config', config], args)
    const asked = messages.filter(({ method }) => method === 'session/request_permission')
    expect(JSON.stringify(asked)).toContain('server-everything')
  })
})

interface Message {
  readonly method?: string
  readonly result?: Readonly<Record<string, unknown>>
}
