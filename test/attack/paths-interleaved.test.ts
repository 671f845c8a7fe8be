import { execFileSync } from 'node:child_process'
import {
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import path from 'node:path'
import { LegateError } from 'legate'
import { diskFiles, type Files } from 'legate/tools'
import { beforeEach, describe, expect, test, vi } from 'vitest'
import { HAS_PROC } from '../../src/core/files/held-directory.ts'
import { tempFolder } from '../support/temp-folder.ts'

type SystemCall = (...args: unknown[]) => Promise<unknown>

/** Called after each call of the system that the disk backend makes by a path. */
const between = vi.hoisted(() => ({ calls: (_name: string, _path: string): void => undefined }))

vi.mock('node:fs/promises', async (importOriginal) => {
  const real = await importOriginal<Record<string, SystemCall>>()
  const names = ['lstat', 'mkdir', 'open', 'opendir', 'readlink', 'rename', 'unlink']
  const watched = names.map((name) => {
    const call: SystemCall = async (...args) => {
      try {
        return await real[name]?.(...args)
      } finally {
        between.calls(name, String(args[0]))
      }
    }
    return [name, call] as const
  })
  return { ...real, ...Object.fromEntries(watched) }
})

beforeEach(() => {
  between.calls = () => undefined
})

const CANARY = 'canary: nobody may read or change this'

interface World {
  readonly files: Files
  readonly at: (...names: string[]) => string
  readonly outside: string
}

function makeWorld(): World {
  const folder = tempFolder()
  const outside = path.join(folder, 'outside')
  mkdirSync(path.join(outside, 'deep'), { recursive: true })
  for (const name of ['secret', 'deep/secret']) writeFileSync(path.join(outside, name), CANARY)
  const workspace = path.join(folder, 'workspace')
  mkdirSync(path.join(workspace, 'dir/deep'), { recursive: true })
  writeFileSync(path.join(workspace, 'dir/deep/secret'), 'inside')
  const files = diskFiles({ workspace }).open({ use: ['file.*:/workspace/**'] })
  return { files, outside, at: (...names) => path.join(workspace, ...names) }
}

/** What another process may do, once, at the worst moment. */
const swaps: Readonly<Record<string, (world: World) => void>> = {
  'the workspace becomes a link': ({ at, outside }) => {
    renameSync(at(), `${at()}-aside`)
    symlinkSync(outside, at())
  },
  'a directory becomes a link': ({ at, outside }) => {
    renameSync(at('dir'), at('aside'))
    symlinkSync(outside, at('dir'))
  },
  'the directory of the file becomes a link': ({ at, outside }) => {
    renameSync(at('dir/deep'), at('aside'))
    symlinkSync(path.join(outside, 'deep'), at('dir/deep'))
  },
  'the directory moves up, and a link takes its place': ({ at, outside }) => {
    renameSync(at('dir/deep'), `${at()}-aside`)
    symlinkSync(path.join(outside, 'deep'), at('dir/deep'))
  },
  'the file becomes a link': ({ at, outside }) => {
    symlinkSync(path.join(outside, 'secret'), at('evil'))
    renameSync(at('evil'), at('dir/deep/secret'))
  },
  'the file becomes a second name of another': ({ at, outside }) => {
    linkSync(path.join(outside, 'secret'), at('evil'))
    renameSync(at('evil'), at('dir/deep/secret'))
  },
  'the file becomes a pipe': ({ at }) => {
    execFileSync('mkfifo', [at('evil')])
    renameSync(at('evil'), at('dir/deep/secret'))
  },
}

const operations: Readonly<Record<string, (files: Files) => Promise<unknown>>> = {
  read: (files) => files.readText('/workspace/dir/deep/secret'),
  list: (files) => files.list('/workspace/dir/deep'),
  stat: (files) => files.stat('/workspace/dir/deep/secret'),
  write: (files) => files.write('/workspace/dir/deep/secret', 'written'),
  'write a new one': (files) => files.write('/workspace/dir/deep/new/file', 'written', { overwrite: false }),
  edit: (files) => files.edit('/workspace/dir/deep/secret', [{ oldText: 'inside', newText: 'written' }]),
  delete: (files) => files.delete('/workspace/dir/deep/secret'),
}

describe.runIf(HAS_PROC)('one swap after every call of the system', () => {
  const cases = Object.keys(operations).flatMap((operation) => Object.keys(swaps).map((swap) => [operation, swap]))

  test.each(cases)('%s, while %s', async (operation = '', swap = '') => {
    for (let moment = 1; ; moment++) {
      const world = makeWorld()
      let calls = 0
      between.calls = () => {
        if (++calls === moment) swaps[swap]?.(world)
      }

      const seen = await operations[operation]?.(world.files).catch((error: unknown) => {
        if (!LegateError.isInstance(error) || error.code === 'tool') throw error
      })

      if (calls < moment) break
      expect(String(seen), `moment ${moment}`).not.toContain('canary')
      const names = readdirSync(world.outside, { recursive: true, encoding: 'utf8' })
      expect(names.sort(), `moment ${moment}`).toEqual(['deep', 'deep/secret', 'secret'])
      for (const name of ['secret', 'deep/secret']) {
        expect(readFileSync(path.join(world.outside, name), 'utf8'), `moment ${moment}`).toBe(CANARY)
      }
      // A listing or a size is of what was there, never of what is outside.
      expect(JSON.stringify(seen ?? null), `moment ${moment}`).not.toContain(`"size":${CANARY.length}`)
    }
  })

  test.each(Object.keys(operations))(
    '%s, while the file is a second name of another for a moment',
    async (operation) => {
      const run = async (from: number, to: number) => {
        const world = makeWorld()
        let calls = 0
        between.calls = () => {
          calls++
          if (calls === from) swaps['the file becomes a second name of another']?.(world)
          if (calls !== to) return
          writeFileSync(world.at('good'), 'inside')
          renameSync(world.at('good'), world.at('dir/deep/secret'))
        }
        const seen = await operations[operation]?.(world.files).catch((error: unknown) => {
          if (!LegateError.isInstance(error) || error.code === 'tool') throw error
        })
        expect(JSON.stringify(seen ?? null), `from ${from} to ${to}`).not.toMatch(/canary|"size":38/)
        expect(readFileSync(path.join(world.outside, 'secret'), 'utf8')).toBe(CANARY)
        return calls
      }

      const last = await run(-1, -1)
      expect(CANARY).toHaveLength(38)
      for (let from = 1; from < last; from++) for (let to = from + 1; to <= last; to++) await run(from, to)
    },
  )

  test('a directory that is moved out of the workspace takes no write with it', async () => {
    const world = makeWorld()
    const moved = path.join(world.outside, 'moved')
    between.calls = (name, at) => {
      if (name === 'open' && at.endsWith('.tmp') && !existsSync(moved)) renameSync(world.at('dir/deep'), moved)
    }

    await expect(world.files.write('/workspace/dir/deep/secret', 'written')).rejects.toThrow(/moved or replaced/)

    expect(readdirSync(moved)).toEqual(['secret'])
    expect(readFileSync(path.join(moved, 'secret'), 'utf8')).toBe('inside')
  })
})
