// The official conformance suite of MCP against our server, and against our client over HTTP. It needs Node 22: `node scripts/protocols.mjs` fetches both, and
// runs this file with their folder in the environment.

import path from 'node:path'
import type { Principal } from 'legate'
import { SCOPES } from 'legate/grant'
import { describe, expect, onTestFinished, test } from 'vitest'
import { startServer } from '../../server/support/server.ts'
import { foreignFolder, foreignProgram } from '../support/foreign-program.ts'
import { conformanceAgents } from './support/conformance-agents.ts'
import { conformanceOffer } from './support/conformance-offer.ts'

const suite: Principal = { id: 'suite', scopes: [...SCOPES] }
const plenty = 1_000_000

/** Scenarios that fail, and why that is right. */
const EXPECTED: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  '2026-07-28': {
    'input-required-result-basic-sampling': 'sampling is deprecated, and not offered',
    'input-required-result-basic-list-roots': 'roots are deprecated, and not offered',
    'http-custom-header-server-validation': 'pending in the suite: no tool here has such headers',
  },
  '2025-11-25': {
    'tools-call-sampling': 'sampling is deprecated, and not offered',
  },
}

describe.skipIf(foreignFolder === '')('the conformance suite of MCP', () => {
  test.each(Object.keys(EXPECTED))('passes for the revision %s', { timeout: 300_000 }, async (revision) => {
    const limits = { startsPerMinute: plenty, readsPerMinute: plenty, perAddressPerMinute: plenty }
    const options = { authenticate: () => suite, mcp: conformanceOffer, limits }
    const setting = await startServer(options, { agents: conformanceAgents })
    onTestFinished(() => setting[Symbol.asyncDispose]())
    const verdicts = await judged(`${setting.server.url}/mcp`, revision)
    const failed = [...verdicts].filter(([, verdict]) => verdict === '✗').map(([name]) => name)
    expect(verdicts.size).toBeGreaterThan(30)
    expect(failed.sort()).toEqual(Object.keys(EXPECTED[revision] ?? {}).sort())
  })
})

/** Scenarios in the client role, with the checks that fail. Authorisation and elicitation are left out. */
const CLIENT: Readonly<Record<string, readonly string[]>> = {
  initialize: [],
  tools_call: [],
  'sse-retry': [],
  'request-metadata': [],
  'http-standard-headers': [],
  // The suite dictates calls, some with null, that a client makes which nobody asks for anything: no agent does.
  'http-custom-headers': ['ClientCustomHeaderOmitNull', 'NotObserved'],
  'http-invalid-tool-headers': [],
  'json-schema-ref-no-deref': [],
}

describe.skipIf(foreignFolder === '')('our client in the conformance suite of MCP', () => {
  test.each(Object.entries(CLIENT))('%s', { timeout: 60_000 }, async (scenario, failing) => {
    const client = `${process.execPath} ${path.join(import.meta.dirname, 'programs/conformance-client.mjs')}`
    const args = ['client', '--scenario', scenario, '--command', client]
    const { stderr } = await foreignProgram('@modelcontextprotocol/conformance/dist/index.js', args)

    expect(stderr).toMatch(/Passed: [1-9]\d*\/\d+/)
    const failed = [...stderr.matchAll(/^ {2}- (\w+): /gm)].map(([, check = '']) => check)
    expect([...new Set(failed)].sort()).toEqual([...failing].sort())
  })
})

/** The verdict of each scenario that a revision requires, and of those that are run for information. */
async function judged(url: string, revision: string): Promise<ReadonlyMap<string, string>> {
  const program = '@modelcontextprotocol/conformance/dist/index.js'
  const { stdout } = await foreignProgram(program, ['server', '--url', url, '--requirements', revision])
  const [, summary = ''] = stdout.split('=== SUMMARY ===')
  return new Map(
    [...summary.matchAll(/^([✓✗]) (\S+): \d+ passed/gm)].map(([, verdict = '', name = '']) => [name, verdict]),
  )
}
