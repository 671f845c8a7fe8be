import { agent, createRuntime } from 'legate'
import { sqliteStore } from 'legate/store/sqlite'
import { fakeClock, scriptedModel } from 'legate/testing'
import { beforeEach, expect, test } from 'vitest'
import { localStore } from '../support/rows.ts'
import { Place, skipUnlessBuilt } from './support/cli.ts'

beforeEach(skipUnlessBuilt)

test('what is too much goes, is named before and after, and is known to have been deleted', async () => {
  const place = new Place()
  const [first = '', second = ''] = await place.endedRuns('lead', 'lead')
  const [last = ''] = await place.endedRuns('failing')
  const ids = [first, second].map((id) => id.slice(-8))

  const trial = await place.run(['prune', '--keep', '1', '--dry-run'])
  const pruned = await place.run(['prune', '--keep', '1'])
  const again = await place.run(['prune', '--keep', '1', '--older-than', '30d'])

  expect([trial.code, trial.stderr]).toEqual([0, ''])
  expect(trial.stdout).toMatch(
    /^(would be deleted: \w{8} lead, 3 runs \(more runs than were to be kept\)\n){2}2 trees with 6 runs would be deleted\.\n$/,
  )
  for (const id of ids) expect(trial.stdout).toContain(id)
  expect([pruned.code, pruned.stderr]).toEqual([0, ''])
  expect(pruned.stdout).toBe(
    trial.stdout.replaceAll('would be deleted', 'deleted').replace('would be deleted', 'deleted'),
  )
  expect(again).toEqual({ code: 0, stdout: 'Nothing to delete: no run is beyond these limits.\n', stderr: '' })

  const reads = await Promise.all(['show', 'transcript'].map((command) => place.run([command, ids[0] ?? ''])))
  for (const { code, stdout, stderr } of reads) {
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toMatch(
      /^legate: lead \w{8} was deleted on \d{4}-.* \(more runs than were to be kept\)\. The last commit of its tree has the hash \S{43}\.\n$/,
    )
  }
  const [why, audit, ps, unknown] = await Promise.all([
    place.run(['why', first]),
    place.run(['audit', '--verify']),
    place.run(['ps', '--all', '--quiet']),
    place.run(['show', 'ffffffff']),
  ])
  expect([why.code, why.stderr]).toEqual([0, ''])
  expect(why.stdout).toMatch(/^lead: It was deleted at \d{4}-.* \(maximum\)/)
  expect(audit.stdout).toMatch(/^1 tree, .*: no errors\.\n$/)
  expect(ps.stdout).toBe(`${last.slice(-8)}\n`)
  expect([unknown.code, unknown.stderr]).toEqual([2, expect.stringContaining('No id here ends in "ffffffff"')])
})

test('what is too old goes, and what was exported before comes back', async () => {
  const place = new Place()
  const [id = ''] = await place.endedRuns('lead')
  const exported = await place.run(['export', id])

  const young = await place.run(['prune', '--older-than', '1h'])
  const old = await place.run(['prune', '--older-than', '0s', '--json'])
  const changed = await place.run(['import'], { input: exported.stdout.replace(/"hash":"./, '"hash":"~') })
  const taken = await place.run(['import'], { input: exported.stdout })

  expect(young.stdout).toBe('Nothing to delete: no run is beyond these limits.\n')
  const { hash } = JSON.parse(exported.stdout.split('\n')[0] ?? '') as { hash: string }
  expect(JSON.parse(old.stdout)).toMatchObject({ agent: 'lead', reason: 'ttl', hash })
  expect(changed.code).not.toBe(0)
  expect([taken.code, taken.stderr]).toEqual([0, ''])
  expect(localStore(place.runtime()).turn(id)?.outcome?.status).toBe('completed')
  expect((await place.run(['audit', '--verify'])).code).toBe(0)
})

test('a time is said with its unit, and the oldest go first', async () => {
  const place = new Place()
  const ages = [70, 20 * 60, 13 * 3_600, 31 * 86_400, 9 * 604_800]
  const roots: string[] = []
  for (const age of ages) {
    const clock = fakeClock(Date.now() - age * 1_000)
    const runtime = createRuntime({ store: sqliteStore(place.store), clock })
    const who = agent({ name: `of ${age}`, instructions: '', model: scriptedModel(['ok']) })
    roots.unshift((await runtime.run(who, 'Hello.').result).conversationId)
    await runtime.close()
  }
  const oldest = async (time: string) => {
    const { stdout } = await place.run(['prune', '--older-than', time, '--dry-run', '--json'])
    return stdout.split('\n').flatMap((line) => (line === '' ? [] : [(JSON.parse(line) as { rootId: string }).rootId]))
  }

  expect(await Promise.all(['60s', '90s', '15m', '12h', '30d', '8w', '10w'].map(oldest))).toEqual(
    [5, 4, 4, 3, 2, 1, 0].map((count) => roots.slice(0, count)),
  )
})

test('a run that is not over stays', async () => {
  const place = new Place()
  const [id = ''] = await place.orphans('lead')

  const { code, stdout } = await place.run(['prune', '--keep', '0', '--older-than', '0s'])

  expect({ code, stdout }).toEqual({ code: 0, stdout: 'Nothing to delete: no run is beyond these limits.\n' })
  expect(localStore(place.runtime()).turn(id)?.state).toBe('running')
})
