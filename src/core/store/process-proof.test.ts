import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { nodeFs } from '../base/node-system.ts'
import { hasNoProcess, isProvenDead, type ProcessProof, proveSelf } from './process-proof.ts'

afterEach(() => vi.restoreAllMocks())

/** A child, and the proof that it would write of itself. */
async function startChild(): Promise<{ child: ChildProcess; proof: ProcessProof }> {
  const child = spawn('sleep', ['60'])
  onTestFinished(() => {
    child.kill('SIGKILL')
  })
  await once(child, 'spawn')
  return { child, proof: proofOf(child.pid ?? 0) }
}

function proofOf(pid: number): ProcessProof {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  return { ...proveSelf(), pid, processStart: stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? '' }
}

async function killed({ child, proof }: Awaited<ReturnType<typeof startChild>>): Promise<ProcessProof> {
  child.kill('SIGKILL')
  await once(child, 'exit')
  return proof
}

/** The system answers so where it is asked for what /proc says of a process. */
function procFails(code: string): void {
  const error = Object.assign(new Error(code), { code })
  vi.spyOn(nodeFs, 'readFileSync').mockImplementation(() => {
    throw error
  })
}

describe.skipIf(!existsSync('/proc/self/stat'))('who is proven dead', () => {
  test('not the process itself, and not a child that runs', async () => {
    expect(isProvenDead(proveSelf())).toBe(false)
    expect(isProvenDead((await startChild()).proof)).toBe(false)
  })

  test('a process that was killed', async () => {
    expect(isProvenDead(await killed(await startChild()))).toBe(true)
  })

  test('a process whose pid another one has now', () => {
    expect(isProvenDead({ ...proveSelf(), processStart: '1' })).toBe(true)
  })

  test('a process that has ended, and whose parent has not heard of it', async () => {
    const parent = spawn('sh', ['-c', 'sleep 60 & echo $!; exec sleep 60'])
    onTestFinished(() => {
      parent.kill('SIGKILL')
    })
    const [said] = (await once(parent.stdout, 'data')) as [Buffer]
    const proof = proofOf(Number(said))
    // As long as the parent is a shell, it hears of its child's end, and nothing remembers the child.
    await vi.waitFor(() => expect(readFileSync(`/proc/${parent.pid}/comm`, 'utf8')).toBe('sleep\n'))

    process.kill(proof.pid, 'SIGKILL')

    await vi.waitFor(() => expect(readFileSync(`/proc/${proof.pid}/stat`, 'utf8')).toMatch(/\) Z /))
    expect(isProvenDead(proof)).toBe(true)
    expect(hasNoProcess(proof.pid)).toBe(false)
  })

  test.each(['ENOENT', 'EMFILE', 'ENFILE', 'EACCES', 'EPERM', 'EIO', 'ESRCH'])(
    'not a living process of which /proc says nothing (%s), and a dead one all the same',
    async (code) => {
      const living = await startChild()
      const dead = await killed(await startChild())
      procFails(code)

      expect(isProvenDead(living.proof)).toBe(false)
      expect(isProvenDead(dead)).toBe(true)
    },
  )

  test.each(['', 'what?', '1 (sleep) S 1 1', '1 (sleep)'])(
    'not a living process of which /proc says %j',
    async (text) => {
      const { proof } = await startChild()
      vi.spyOn(nodeFs, 'readFileSync').mockReturnValue(text)

      expect(isProvenDead(proof)).toBe(false)
    },
  )

  test('not a living process that another user owns and may not be signalled', async () => {
    const { proof } = await startChild()
    procFails('ENOENT')
    vi.spyOn(process, 'kill').mockImplementation(() => {
      throw Object.assign(new Error('EPERM'), { code: 'EPERM' })
    })

    expect(isProvenDead(proof)).toBe(false)
  })

  test('not a process of another boot, of another container, or of a machine that does not tell', async () => {
    const dead = await killed(await startChild())
    const [boot = '', space = ''] = dead.bootId.split(/\/(.*)/)

    expect(isProvenDead({ ...dead, bootId: `another/${space}` })).toBe(false)
    expect(isProvenDead({ ...dead, bootId: `${boot}/pid:[1]` })).toBe(false)
    expect(isProvenDead({ ...dead, bootId: 'host/unknown' })).toBe(false)
    expect(isProvenDead(dead)).toBe(true)
  })
})

test.each([0, -1, 1.5, Number.NaN, 2 ** 40])('nothing is known of a process with the number %s', (pid) => {
  expect(isProvenDead({ ...proveSelf(), pid })).toBe(false)
})
