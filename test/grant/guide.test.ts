import { readFileSync } from 'node:fs'
import path from 'node:path'
import { agent, createRuntime } from 'legate'
import { scriptedModel } from 'legate/testing'
import { afterAll, describe, expect, test } from 'vitest'
import { hostRequest, programRequest, requestText } from '../../src/core/grant/request.ts'
import { readWords } from '../../src/core/grant/words.ts'

const guide = readFileSync(path.join(import.meta.dirname, '../../docs/guide/grant.md'), 'utf8')
const runtime = createRuntime({ model: scriptedModel([]) })
afterAll(() => runtime.close())

/** The rows of the table with this head, and in each cell what stands in backticks. */
function rowsOf(head: string): string[][][] {
  const [, rest = ''] = guide.split(`${head}\n`)
  const [table = ''] = rest.split('\n\n')
  const rows = table.split('\n').slice(1)
  return rows.map((row) => {
    return row
      .split('|')
      .slice(1, -1)
      .map((cell) => [...cell.matchAll(/`([^`]+)`/g)].map(([, code = '']) => code))
  })
}

const rules = rowsOf('| rule | allows | does not allow |').map(([rule, allowed = [], refused = []]) => {
  return [rule?.[0] ?? '', allowed, refused] as const
})

describe('I11: the guide to grants is true to the letter', () => {
  test.each(rules)('%s', async (rule, allowed, refused) => {
    const verdict = async (code: string) => {
      const [domain] = rule.split(':')
      const request = domain === 'net' ? requestText(hostRequest(code)) : `exec:${code}`
      return (await runtime.explain(agent({ name: 'a', instructions: '', grant: { use: [rule] } }), request)).verdict
    }

    for (const code of allowed) expect([code, await verdict(code)]).toEqual([code, 'allow'])
    for (const code of refused) expect([code, await verdict(code)]).toEqual([code, 'deny'])
    expect(refused.length).toBeGreaterThan(0)
  })

  test('what is run, and the request it makes', () => {
    const rows = rowsOf('| what is run | the request |')
    const made = rows.map(([run = []]) => [...new Set(requestsOf(run))])

    expect(rows.length).toBeGreaterThan(5)
    expect(made).toEqual(rows.map(([, requests = []]) => [requests[0]]))
  })
})

/** Each is something that is run, unless they are the words of one command line. */
function requestsOf(run: readonly string[]): readonly string[] {
  return run[1]?.startsWith('-') === true ? [requestText(programRequest(run))] : run.map(requestOf)
}

function requestOf(code: string): string {
  if (/^https?:/.test(code)) return requestText(hostRequest(code))
  const words = readWords(code)
  return requestText(words === undefined ? programRequest(['sh', '-c', code]) : programRequest(words))
}
