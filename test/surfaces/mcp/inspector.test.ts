// The command line of MCP's own inspector against `legate mcp` and a server. It needs Node 22: see `scripts/protocols.mjs`.

import { beforeEach, describe, expect, test } from 'vitest'
import { agentsModule, Place, program, skipUnlessBuilt } from '../../cli/support/cli.ts'
import { served } from '../../cli/support/served.ts'
import { foreignFolder, foreignProgram } from '../support/foreign-program.ts'

const INSPECTOR = '@modelcontextprotocol/inspector/clients/launcher/build/index.js'

describe.skipIf(foreignFolder === '')('the inspector of MCP', { timeout: 60_000 }, () => {
  beforeEach(skipUnlessBuilt)

  const asking = async (place: Place, method: readonly string[], target: readonly string[]) => {
    const env = { ...place.env, HOME: place.folder }
    const { code, stdout } = await foreignProgram(INSPECTOR, ['--cli', '--method', ...method, ...target], env)
    expect(code).toBe(0)
    return JSON.parse(stdout)
  }

  test.each(['stdio', 'http'])('lists agents, calls one, and reads its run, over %s', async (transport) => {
    const place = new Place()
    place.open()
    const { base, token } = transport === 'http' ? await served(place, [agentsModule]) : { base: '', token: '' }
    const far = ['--transport', 'http', '--header', `Authorization: Bearer ${token}`, '--', `${base}/mcp`]
    const target = transport === 'http' ? far : ['--', process.execPath, program, 'mcp', agentsModule]
    const { tools } = await asking(place, ['tools/list'], target)
    expect(tools.map(({ name }: { name: string }) => name)).toContain('talker')
    const call = ['tools/call', '--tool-name', 'talker', '--tool-arg', 'message=Hello']
    const { content, _meta } = await asking(place, call, target)
    const { runId, status } = _meta['legate/run']
    expect([status, content[0].type]).toEqual(['completed', 'text'])
    const { contents } = await asking(place, ['resources/read', '--uri', `legate://runs/${runId}`], target)
    expect(JSON.parse(contents[0].text)).toMatchObject({ state: 'ended', outcome: { status: 'completed' } })
  })
})
