// The second screen of README.md, as somebody types it; only the port is another, and the model speaks from this machine.

import { execFile } from 'node:child_process'
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import type { LLMock } from '@copilotkit/aimock'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { tempFolder } from '../support/temp-folder.ts'
import { type Place, program, root, skipUnlessBuilt } from './support/cli.ts'
import { serveModel } from './support/model-server.ts'
import { project } from './support/project.ts'
import { ask, served } from './support/served.ts'

beforeEach(skipUnlessBuilt)

const readme = readFileSync(path.join(root, 'README.md'), 'utf8')
const [, code = ''] = /^```ts\n(.*?)^```$/ms.exec(readme) ?? []
const [, commands = ''] = /^## Serve them\n.*?^```sh\n(.*?)^```$/ms.exec(readme) ?? []

/** Answers as the comments of the program say. */
function answers(mock: LLMock): void {
  mock.on({ userMessage: 'Write about QUIC.', hasToolResult: false }, call('research', { topic: 'QUIC' }))
  mock.on({ userMessage: 'Write about QUIC.', hasToolResult: true }, { content: 'QUIC is fast. It is not published.' })
  mock.on({ userMessage: /topic/, hasToolResult: false }, call('publish', {}))
  mock.on({ userMessage: /topic/, hasToolResult: true }, { content: 'QUIC saves a round trip.' })
}

function call(name: string, input: object) {
  return { toolCalls: [{ name, arguments: JSON.stringify(input) }] }
}

/** A folder inside of the package, so that `legate` means the package itself, on the path too. */
async function readersPlace(files: Readonly<Record<string, string>>): Promise<{ place: Place; folder: string }> {
  const place = project({})
  const folder = tempFolder(onTestFinished, path.join(root, 'dist'))
  mkdirSync(path.join(folder, 'bin'))
  writeFileSync(path.join(folder, 'bin/legate'), `#!/bin/sh\nexec "${process.execPath}" "${program}" "$@"\n`)
  chmodSync(path.join(folder, 'bin/legate'), 0o755)
  for (const [name, text] of Object.entries(files)) writeFileSync(path.join(folder, name), text)
  await serveModel(place, answers)
  place.more['LEGATE_MODEL'] = ''
  place.more['PATH'] = `${folder}/bin:${path.dirname(process.execPath)}:${process.env['PATH']}`
  return { place, folder }
}

describe('README.md', () => {
  it('serves the agents of the program, and somebody else starts one with a token', async () => {
    const agents = code.slice(0, code.indexOf('const run =')).replace('const editor =', 'export const editor =')
    const { place, folder } = await readersPlace({ 'agents.mjs': agents })
    const [serve = '', ...rest] = commands.split('\n')
    const words = serve.replace(/#.*/, '').trim().split(/ +/)
    expect(words.slice(0, 2)).toEqual(['legate', 'serve'])
    const server = place.legate([...words.slice(1), '--port', '0'], { cwd: folder })
    await server.seen(() => server.stdout.includes('\n'), 'the address')
    const port = /:(\d+)\//.exec(server.stdout)?.[1] ?? ''
    const script = rest.join('\n').replaceAll('4747', port)
    const { stdout } = await promisify(execFile)('bash', ['-c', script], { cwd: folder, env: place.env })
    expect(JSON.parse(stdout)).toMatchObject({ agent: 'editor', owner: 'ann', outcome: { status: 'completed' } })
  })
})

describe('agents of a module without a model', () => {
  const silent = `import { agent } from '${path.join(root, 'dist/index.js')}'\nexport const editor = agent({ name: 'editor', instructions: 'Write.' })\n`

  it('are named when the server starts, with the reason, and a start says it too', async () => {
    const place = project({ 'agents.mjs': silent })
    Object.assign(place.more, { OPENAI_API_KEY: 'test-key', LEGATE_MODEL: '' })
    const server = await served(place, ['agents.mjs'])
    expect(server.process.stderr).toMatch(/^legate: warning: No model for editor: a start is refused\. .*--model/m)
    const answer = await ask(server, '/v1/runs', {
      method: 'POST',
      body: JSON.stringify({ agent: 'editor', input: 'Hi' }),
    })
    expect(answer.status).toBe(422)
  })

  it('are no reason for a word where --model or LEGATE_MODEL names one, and a model that cannot be used ends the start', async () => {
    const place = project({ 'agents.mjs': silent })
    Object.assign(place.more, { OPENAI_API_KEY: 'test-key', LEGATE_MODEL: '' })
    const named = await served(place, ['agents.mjs', '--model', 'openai/gpt-5'])
    expect(named.process.stderr).not.toContain('No model')
    const { agents } = (await (await ask(named, '/v1/agents')).json()) as { agents: object[] }
    expect(agents).toMatchObject([{ name: 'editor', model: 'openai/gpt-5' }])
    place.more['LEGATE_MODEL'] = 'openai/gpt-5'
    expect((await served(place, ['agents.mjs'])).process.stderr).not.toContain('No model')
    const wrong = await place.run(['serve', 'agents.mjs', '--port', '0', '--model', 'anthropic/claude-sonnet-5'])
    expect(wrong).toMatchObject({ code: 2, stderr: expect.stringContaining('ANTHROPIC_API_KEY') })
  })
})
