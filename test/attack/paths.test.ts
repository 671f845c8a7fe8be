import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
} from 'node:fs'
import net from 'node:net'
import path from 'node:path'
import fc from 'fast-check'
import { DeniedError, LegateError, NotFoundError } from 'legate'
import { type Files, memoryFiles } from 'legate/tools'
import { describe, expect, onTestFinished, test } from 'vitest'
import { HAS_PROC } from '../../src/core/files/held-directory.ts'
import { isFull } from '../crash/support/full.ts'
import { anyUnicode } from '../support/any-unicode.ts'
import { CANARY, checkOutside, GRANT, makeWorld, tryAll } from './support/disk-world.ts'

const ways = HAS_PROC ? ([true, false] as const) : ([false] as const)

const TABLE = (outside: string): readonly string[] => {
  const dots = [
    '..',
    '.',
    '...',
    '‥',
    '․․',
    '．．',
    '。。',
    '%2e%2e',
    '%252e%252e',
    '..%00',
    '..;',
    '\u202e..',
    '.\u200b.',
    '.\u0307.',
    '..\ufeff',
  ]
  const slashes = ['/', '\\', '%2f', '%5c', '∕', '⁄', '／', '＼', '//', '/./', '\u2215', '%c0%af', ':', '\0/']
  const climbs = dots.flatMap((dot) =>
    slashes.flatMap((slash) => [1, 2, 5].map((times) => `${dot}${slash}`.repeat(times))),
  )
  const roots = [
    '/proc/self/root',
    '/proc/self/cwd',
    '/proc/self/fd/0',
    '/proc/thread-self/root',
    '/dev/fd/0',
    '/dev/stdin',
  ]
  const devices = [
    '/dev/zero',
    '/dev/full',
    '/dev/tty',
    '/dev/ptmx',
    '/dev/random',
    'CON',
    'NUL',
    'COM1',
    'a:b',
    'a::$DATA',
    'A~1',
  ]
  const odd = [
    '',
    ' ',
    '~',
    '~root',
    '$HOME',
    '`id`',
    '-rf',
    '\u007f',
    '\u009b2J',
    '\ud800',
    '\udfff',
    'a\u0000.txt',
    '\n',
    '\r',
    '\t',
  ]
  const long = [
    'x'.repeat(255),
    'x'.repeat(256),
    'x'.repeat(4_096),
    'x/'.repeat(1_000),
    '/'.repeat(5_000),
    'é'.repeat(200),
    '../'.repeat(1_500),
  ]
  const tails = ['', 'outside/secret', 'secret', outside, `${outside}/secret`]
  const heads = [
    '/workspace/',
    '/workspace',
    '/',
    '',
    '/userinput/',
    '/internal/',
    'file:///',
    '//',
    '\\\\?\\',
    '/workspace/a/',
  ]
  const bodies = [...climbs, ...roots, ...devices, ...odd, ...long]
  return heads.flatMap((head) => bodies.flatMap((body, index) => `${head}${body}${tails[index % tails.length]}`))
}

const hostileName = fc
  .array(
    fc.oneof(
      {
        weight: 3,
        arbitrary: fc.constantFrom(
          '..',
          '.',
          '/',
          '\\',
          '//',
          '\0',
          '*',
          '?',
          '~',
          ':',
          ' ',
          '\n',
          '%2e',
          '%00',
          '．',
          '․',
        ),
      },
      {
        weight: 2,
        arbitrary: fc.constantFrom(
          'workspace',
          'outside',
          'secret',
          'proc',
          'self',
          'root',
          'link',
          'tmp',
          'a',
          'deep',
        ),
      },
      { weight: 1, arbitrary: anyUnicode({ maxLength: 6 }) },
    ),
    { maxLength: 14 },
  )
  .chain((parts) => fc.constantFrom('/workspace/', '/workspace/link/', '/', '').map((head) => head + parts.join('')))

describe('hostile names', () => {
  test.each([
    ['memory', undefined] as const,
    ...ways.map((hasProc) => [hasProc ? 'disk' : 'disk without /proc', hasProc] as const),
  ])('of a table, in every operation: %s', { timeout: 120_000 }, async (_name, hasProc) => {
    const world = makeWorld(hasProc)
    symlinkSync(world.outside, path.join(world.workspace, 'link'))
    const files = hasProc === undefined ? memoryFiles().open(GRANT) : world.files
    const names = TABLE(world.outside)
    expect(names.length).toBeGreaterThan(5_000)
    // More of them where it is usual on this system than in each other way.
    const step = isFull ? 1 : hasProc === ways[0] ? 2 : 4
    const tried = names.filter((_, at) => at % step === 0)

    await eachOf(tried, async (name) => {
      expect(await tryAll(files, name), name).not.toContain('canary')
    })

    checkOutside(world)
  })

  test('made at random, on disk', { timeout: isFull ? 3_600_000 : 120_000 }, async () => {
    const world = makeWorld()
    symlinkSync(world.outside, path.join(world.workspace, 'link'))

    await eachOf(fc.sample(hostileName, isFull ? 100_000 : 300), async (name) => {
      expect(await tryAll(world.files, name), name).not.toContain('canary')
    })

    checkOutside(world)
  })

  test('memory and disk say the same to every name', { timeout: 120_000 }, async () => {
    const say = async (files: Files, name: string) => {
      try {
        await files.write(name, name)
        return await files.readText(name)
      } catch (error) {
        return LegateError.isInstance(error) ? error.code : String(error)
      }
    }
    const disk = makeWorld().files
    const memory = memoryFiles().open(GRANT)

    await fc.assert(
      fc.asyncProperty(hostileName, async (name) => {
        fc.pre(!name.startsWith('/userinput'))
        expect(await say(disk, name)).toBe(await say(memory, name))
      }),
      { numRuns: 1_500 },
    )
  })
})

describe.each(ways)('what lies in a workspace, held by /proc: %s', (hasProc) => {
  test('no link leads out, wherever it is in the path', async () => {
    const world = makeWorld(hasProc)
    const { workspace, outside, files } = world
    mkdirSync(path.join(workspace, 'real'))
    const links: Readonly<Record<string, string>> = {
      directory: outside,
      file: path.join(outside, 'secret'),
      relative: '../outside',
      climbing: '../../../../../../../../../../etc',
      dangling: path.join(outside, 'new'),
      self: 'self',
      chain: 'directory',
      long: 'chain/deep/../deep',
      root: '/proc/self/root',
      cwd: '/proc/self/cwd',
      inside: 'real',
      'real/up': '..',
      'real/out': '../../outside',
    }
    for (const [name, target] of Object.entries(links)) symlinkSync(target, path.join(workspace, name))

    for (const name of Object.keys(links)) {
      for (const tail of ['', '/secret', '/deep/secret', '/new', '/etc/passwd', '/outside/secret', '/a']) {
        expect(await tryAll(files, `/workspace/${name}${tail}`)).not.toMatch(/canary|root:|written|edited/)
      }
    }

    checkOutside(world)
    expect((await files.list('/workspace')).entries.map((entry) => entry.path)).toEqual(['/workspace/real'])
    expect((await files.list('/workspace/real')).entries).toEqual([])
    for (const name of Object.keys(links)) expect(lstatSync(path.join(workspace, name)).isSymbolicLink()).toBe(true)
  })

  test('a farm of links: the listing stays empty and nothing is walked', async () => {
    const world = makeWorld(hasProc)
    for (let index = 0; index < 2_000; index++) {
      symlinkSync(index % 2 === 0 ? world.outside : '.', path.join(world.workspace, `link-${index}`))
    }

    expect(await world.files.list('/workspace')).toEqual({ entries: [], isCut: false })
    expect(await tryAll(world.files, `/workspace/${'link-1/'.repeat(200)}link-0`)).toBe('[]')

    checkOutside(world)
  })

  test('a file with a second name is neither read nor changed', async () => {
    const world = makeWorld(hasProc)
    linkSync(path.join(world.outside, 'secret'), path.join(world.workspace, 'hard'))

    for (const call of [
      () => world.files.readText('/workspace/hard'),
      () => world.files.write('/workspace/hard', 'x'),
      () => world.files.edit('/workspace/hard', [{ oldText: 'canary', newText: 'x' }]),
      () => world.files.delete('/workspace/hard'),
    ]) {
      await expect(call()).rejects.toThrow(/it has a second name \(a hard link\)/)
    }
    expect((await world.files.list('/workspace')).entries).toEqual([])

    checkOutside(world)
    expect(statSync(path.join(world.outside, 'secret')).nlink).toBe(2)
  })

  test('pipes, sockets and devices are refused at once', { timeout: 10_000 }, async () => {
    const world = makeWorld(hasProc)
    execFileSync('mkfifo', [path.join(world.workspace, 'pipe')])
    const server = net.createServer().listen(path.join(world.workspace, 'socket'))
    onTestFinished(() => {
      server.close()
    })
    await new Promise((resolve) => server.once('listening', resolve))
    const hasDevice = makeDevice(path.join(world.workspace, 'zero'))
    const names = ['pipe', 'socket', ...(hasDevice ? ['zero'] : [])]

    for (const name of names) {
      await expect(world.files.readBytes(`/workspace/${name}`)).rejects.toThrow(/it is no plain file/)
      await expect(world.files.write(`/workspace/${name}`, 'x')).rejects.toThrow(/it is no plain file/)
      await expect(world.files.delete(`/workspace/${name}`)).rejects.toThrow(/it is no plain file/)
      await expect(world.files.stat(`/workspace/${name}`)).rejects.toThrow(NotFoundError)
    }
    expect((await world.files.list('/workspace')).entries).toEqual([])
  })

  test('a workspace that was replaced by a link is not used', async () => {
    const world = makeWorld(hasProc)
    await world.files.write('/workspace/a', 'x')
    renameSync(world.workspace, path.join(world.folder, 'moved'))
    symlinkSync(world.outside, world.workspace)

    expect(await tryAll(world.files, '/workspace/secret')).toBe('[]')
    expect(await tryAll(world.files, '/workspace/a')).toBe('[]')
    expect(readFileSync(path.join(world.outside, 'a'), 'utf8')).toBe(CANARY)
    expect(existsSync(path.join(world.outside, 'below'))).toBe(false)
  })

  test('a write leaves one whole file with its mode, and nothing beside it', async () => {
    const { files, workspace } = makeWorld(hasProc)
    await files.write('/workspace/run.sh', 'old')
    chmodSync(path.join(workspace, 'run.sh'), 0o4750)

    const sizes = new Set<number>()
    const reading = (async () => {
      for (let count = 0; count < 100; count++) sizes.add((await files.readBytes('/workspace/run.sh')).length)
    })()
    for (let count = 0; count < 30; count++) await files.write('/workspace/run.sh', 'x'.repeat(100_000))
    await reading

    expect([...sizes].every((size) => size === 3 || size === 100_000)).toBe(true)
    expect(statSync(path.join(workspace, 'run.sh')).mode & 0o7777).toBe(0o750)
    expect(readdirSync(workspace)).toEqual(['run.sh'])
  })

  test('what the system refuses is said without telling where the area lies', async (context) => {
    context.skip(process.getuid?.() === 0, 'root may do everything')
    const { files, workspace, folder } = makeWorld(hasProc)
    await files.write('/workspace/a', 'x')
    chmodSync(path.join(workspace, 'a'), 0)

    const error = await files.readText('/workspace/a').catch((thrown: unknown) => thrown)

    expect(error).toBeInstanceOf(DeniedError)
    expect(JSON.stringify([error, String(error)])).not.toContain(folder)
  })
})

/** Some at a time: what they do to one another is part of the attack. */
async function eachOf(names: readonly string[], attack: (name: string) => Promise<void>): Promise<void> {
  for (let start = 0; start < names.length; start += 32) await Promise.all(names.slice(start, start + 32).map(attack))
}

/** Only root can make one. */
function makeDevice(name: string): boolean {
  try {
    execFileSync('mknod', [name, 'c', '1', '5'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}
