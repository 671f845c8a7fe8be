import { expect, test } from 'vitest'
import { patient } from './support/patient.ts'
import { Receiver } from './support/receiver.ts'
import { greeter, startServer } from './support/server.ts'

/** The samples of a page by name and labels; every one must have its type and a number. */
function samplesOf(page: string): Map<string, number> {
  const lines = page.split('\n')
  expect(lines.slice(-2)).toEqual(['# EOF', ''])
  const types = new Map<string, string>()
  const samples = new Map<string, number>()
  for (const line of lines.slice(0, -2)) {
    const type = /^# TYPE (\w+) (counter|gauge|histogram)$/.exec(line)
    if (type !== null) {
      expect(types.has(type[1] ?? ''), line).toBe(false)
      types.set(type[1] ?? '', type[2] ?? '')
      continue
    }
    if (line.startsWith('# HELP ')) continue
    const [, name = '', labels = '', value] = /^(\w+)(\{.*\})? (\S+)$/.exec(line) ?? []
    expect(types.has(name.replace(/_(total|bucket|sum|count)$/, '')) || types.has(name), line).toBe(true)
    expect(Number.isFinite(Number(value)), line).toBe(true)
    expect(samples.has(name + labels), line).toBe(false)
    samples.set(name + labels, Number(value))
  }
  expect(types.size).toBeGreaterThanOrEqual(20)
  return samples
}

test('the page of figures has the form of OpenMetrics, and its figures move', async () => {
  await using receiver = await new Receiver().listen()
  const { slow, go } = patient()
  await using setting = await startServer(
    { webhooks: { allowPrivate: true, leaseMs: 2_000 } },
    { agents: [greeter, slow] },
  )
  const { token } = setting
  await setting.post('/v1/webhooks', { url: receiver.url, types: ['run.ended'] })
  await setting.post('/v1/runs?wait=10', { agent: 'greeter', input: 'Hi' })
  const waiting = await setting.post('/v1/runs', { agent: 'patient', input: 'Hi' })
  const { runId } = (await waiting.json()) as { runId: string }
  await receiver.until((arrived) => arrived.length > 0)
  await setting.get('/v1/runs/none', { token })

  const read = async () => samplesOf(await (await setting.get('/metrics')).text())
  await expect.poll(async () => (await read()).get('legate_webhook_deliveries_total{result="delivered"}')).toBe(1)
  const samples = await read()

  expect(Object.fromEntries(samples)).toMatchObject({
    'legate_runs{state="running"}': 1,
    'legate_trees{state="open"}': 1,
    legate_nodes_running: 1,
    legate_processes: 1,
    legate_streams: 0,
    'legate_webhooks{state="enabled"}': 1,
    legate_upkeep: 1,
    'legate_http_answers_total{method="",route="",status="404"}': 1,
    'legate_http_answers_total{method="POST",route="/v1/webhooks",status="201"}': 1,
  })
  go()
  await setting.get(`/v1/runs/${runId}/result?wait=10`)
  expect((await read()).get('legate_runs{state="running"}')).toBe(0)
})
