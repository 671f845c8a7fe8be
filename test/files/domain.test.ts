import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ConflictError, DeniedError, InputError, LegateError, NotFoundError } from 'legate'
import { diskFiles, type Files, memoryFiles } from 'legate/tools'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { FileBackend } from '../../src/core/files/backend.ts'
import { FileDomain } from '../../src/core/files/files.ts'
import { tempFolder } from '../support/temp-folder.ts'
import { domains, EVERYTHING } from './support/domains.ts'

const ALL = { use: ['file.*:/workspace/**'] }

describe.each(domains)('files, %s', (_name, make) => {
  describe('paths', () => {
    test.each([
      '/workspace/a',
      '/workspace/a b',
      '/workspace/a ',
      '/workspace/.hidden',
      '/workspace/A',
      '/workspace/é',
      '/workspace/深/い/道',
      '/workspace/__proto__',
      '/workspace/constructor/toString',
      '/workspace/a.b.c',
      `/workspace/${'x'.repeat(255)}`,
    ])('%j is one', async (path) => {
      const files = make().open(ALL)

      await files.write(path, path)

      expect(await files.readText(path)).toBe(path)
      expect((await files.stat(path)).path).toBe(path)
    })

    test.each([
      ['', 'workspace/a', './a', 'C:\\a', '\\\\host\\a'],
      ['/workspace/../a', '/workspace/a..b', '/..', '/workspace/..', '/workspace/.../a'],
      ['/workspace/./a', '/workspace/.', '/workspace//a', '//workspace/a', '/workspace/a/'],
      ['/workspace/*', '/workspace/a?', '/workspace/a\\b', '/workspace/a\0', '/workspace/a\nb', '/workspace/\u001f'],
      [`/workspace/${'x'.repeat(256)}`, `/workspace/${'é'.repeat(128)}`, `/workspace${'/x'.repeat(64)}`],
      ['/workspace/\ud800', '/workspace/.legate.0011223344556677.tmp'],
      [null, undefined, 7, {}, ['/workspace/a']],
    ])('%j is not a path of the domain', async (...paths) => {
      const files = make().open(ALL)

      for (const path of paths) {
        const error = await failure(files.write(path as string, 'x'))
        expect(error).toBeInstanceOf(InputError)
        expect(error.message).toMatch(/^Invalid logical path: /)
      }
    })

    test('case and a space at the end count', async () => {
      const files = make().open(ALL)

      await files.write('/workspace/a', 'a')
      await files.write('/workspace/a ', 'a and a space')
      await files.write('/workspace/A', 'A')

      expect((await files.list('/workspace')).entries.map(({ path }) => path)).toEqual([
        '/workspace/A',
        '/workspace/a',
        '/workspace/a ',
      ])
      expect(await files.readText('/workspace/a ')).toBe('a and a space')
    })
  })

  test('what may be done is the union of the rules, and each operation can be denied by itself', async () => {
    const domain = make()
    await domain.open(ALL).write('/workspace/a', 'x')
    const calls: Readonly<Record<string, (files: Files) => Promise<unknown>>> = {
      list: (files) => files.list('/workspace'),
      stat: (files) => files.stat('/workspace/a'),
      readBytes: (files) => files.readBytes('/workspace/a'),
      readText: (files) => files.readText('/workspace/a'),
      match: (files) => files.match('/workspace/a', /x/g),
      write: (files) => files.write('/workspace/a', 'x'),
      edit: (files) => files.edit('/workspace/a', [{ oldText: 'x', newText: 'x' }]),
      delete: (files) => files.delete('/workspace/a'),
    }
    const refused: Record<string, string[]> = {}
    for (const operation of ['list', 'read', 'write', 'delete']) {
      const files = domain.open({ ...ALL, deny: [`file.${operation}:/workspace/**`] })
      refused[operation] = []
      for (const [name, call] of Object.entries(calls)) {
        if (name === 'delete' && operation !== 'delete') continue
        const error = await call(files).catch((thrown: unknown) => thrown)
        if (DeniedError.isInstance(error)) refused[operation].push(name)
      }
    }

    expect(refused).toEqual({
      list: ['list', 'stat'],
      read: ['readBytes', 'readText', 'match', 'edit'],
      write: ['write', 'edit'],
      delete: ['delete'],
    })
    const both = domain.open({ use: ['file.list:/workspace/**', 'file.read:/workspace/*'] })
    expect(await both.readText('/workspace/a')).toBe('x')
    expect((await both.list('/workspace')).entries).toHaveLength(1)
    expect((await failure(both.write('/workspace/a', ''))).message).toBe(
      "Access denied for operation 'write' on path /workspace/a: no rule of the app allows file.write:/workspace/a.",
    )
  })

  test('a rule ends where a segment ends', async () => {
    const domain = make()
    for (const path of ['/workspace/a', '/workspace/ab/c', '/workspace/b/c', '/workspace/bc']) {
      await domain.open(ALL).write(path, 'x')
    }
    const files = domain.open({ use: ['file.read:/workspace/a', 'file.read:/workspace/b/**'] })

    expect(await files.readText('/workspace/a')).toBe('x')
    expect(await files.readText('/workspace/b/c')).toBe('x')
    for (const path of ['/workspace/ab/c', '/workspace/bc', '/workspace/ab']) {
      expect(await failure(files.readText(path))).toBeInstanceOf(DeniedError)
    }
  })

  test('a listing names nothing that may not be listed', async () => {
    const domain = make()
    for (const name of ['open.txt', 'secret.txt', 'secrets/key']) await domain.open(ALL).write(`/workspace/${name}`, '')
    const files = domain.open({ use: ['file.*:/workspace/**'], deny: ['file.list:/workspace/secret*/**'] })
    const readOnly = domain.open({ use: ['file.read:/workspace/**'] })

    expect((await files.list('/workspace')).entries.map(({ path }) => path)).toEqual(['/workspace/open.txt'])
    expect(await failure(files.list('/workspace/secrets'))).toBeInstanceOf(DeniedError)
    expect(await failure(files.stat('/workspace/secret.txt'))).toBeInstanceOf(DeniedError)
    expect(await failure(readOnly.list('/workspace'))).toBeInstanceOf(DeniedError)
    expect(await failure(readOnly.list('/'))).toBeInstanceOf(DeniedError)
    expect((await files.list('/')).entries.map(({ path }) => path)).toEqual(['/workspace'])
  })

  test('a denial is the same whether the file is there or not', async () => {
    const domain = make()
    await domain.open(ALL).write('/workspace/there', 'x')
    const files = domain.open({ use: [] })

    const words = async (path: string) => (await failure(files.readText(path))).message.replaceAll(path, 'P')
    expect(await words('/workspace/there')).toBe(await words('/workspace/absent'))
  })

  test('a rule for a directory further down lists and reads that and nothing else', async () => {
    const domain = make()
    for (const path of ['/workspace/a/b/c.txt', '/workspace/a/d.txt']) await domain.open(ALL).write(path, 'x')
    const files = domain.open({ use: ['file.*:/workspace/a/b/**'] })

    expect((await files.list('/workspace/a/b')).entries.map(({ path }) => path)).toEqual(['/workspace/a/b/c.txt'])
    expect(await files.readText('/workspace/a/b/c.txt')).toBe('x')
    for (const path of ['/workspace', '/workspace/a', '/userinput']) {
      expect(await failure(files.list(path))).toBeInstanceOf(DeniedError)
    }
    expect(await failure(files.readText('/workspace/a/d.txt'))).toBeInstanceOf(DeniedError)
  })

  test('the policy of the areas overrides every grant, and can be changed', async () => {
    const strict = make().open(EVERYTHING)
    const loose = make({ allowWriteUserinput: true, allowDeleteInternal: true }).open(EVERYTHING)

    expect((await failure(strict.write('/userinput/a', 'x'))).message).toBe(
      "Access denied for operation 'write' on path /userinput/a: /userinput/ is read only.",
    )
    await strict.write('/internal/a', 'x')
    expect(await failure(strict.delete('/internal/a'))).toBeInstanceOf(DeniedError)
    await loose.write('/userinput/a', 'x')
    expect(await failure(loose.delete('/userinput/a'))).toBeInstanceOf(DeniedError)
    await loose.write('/internal/a', 'x')
    await loose.delete('/internal/a')
  })

  test('outside of the areas there is nothing, whatever is granted', async () => {
    const files = make().open({ use: ['file.*:**'] })

    for (const path of ['/etc/passwd', '/workspaces/a', '/Workspace/a', '/a']) {
      expect((await failure(files.write(path, 'x'))).message).toBe(`Path not found: ${path}`)
      expect(await failure(files.readText(path))).toBeInstanceOf(NotFoundError)
      expect(await failure(files.list(path))).toBeInstanceOf(NotFoundError)
    }
  })

  test('wrong arguments are typed errors, after the path and the grant and before the file', async () => {
    const files = make().open(ALL)
    await files.write('/workspace/a', 'x')
    const wrong: readonly (readonly [string, Promise<unknown>])[] = [
      ['from', files.readText('/workspace/absent', { from: -1 })],
      ['count', files.readText('/workspace/absent', { count: 0 })],
      ['offset', files.readBytes('/workspace/absent', { offset: -1 })],
      ['length', files.readBytes('/workspace/absent', { length: 0 })],
      ['overlap', files.match('/workspace/absent', /a/g, { overlap: -1 })],
      ['pattern', files.match('/workspace/absent', '(' as never)],
      ['pattern', files.match('/workspace/absent', /a/)],
      ['data', files.write('/workspace/absent', 7 as never)],
      ['edits', files.edit('/workspace/a', [])],
      ['oldText', files.edit('/workspace/a', [{ oldText: '', newText: 'y' }])],
    ]

    for (const [name, error] of await Promise.all(
      wrong.map(async ([name, call]) => [name, await failure(call)] as const),
    )) {
      expect(error).toBeInstanceOf(InputError)
      expect(error.message).toMatch(`Invalid argument '${name}' (value=`)
    }
    expect(await failure(files.readText('/etc/passwd', { from: -1 }))).toBeInstanceOf(DeniedError)
  })

  test('a file that is there is not overwritten when it must not be', async () => {
    const files = make().open(ALL)

    await files.write('/workspace/a', 'first', { overwrite: false })
    const error = await failure(files.write('/workspace/a', 'second', { overwrite: false }))
    const both = await Promise.allSettled(
      ['one', 'two', 'three'].map((text) => files.write('/workspace/b', text, { overwrite: false })),
    )

    expect(error).toBeInstanceOf(ConflictError)
    expect(error.message).toMatch(/^Conflict detected for path: \/workspace\/a/)
    expect(await files.readText('/workspace/a')).toBe('first')
    expect(both.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
  })

  test('matches of a regular expression, apart or overlapping', async () => {
    const files = make().open(ALL)
    await files.write('/workspace/a', 'aaaa\nb1\nb2')

    expect(await files.match('/workspace/a', /aa/g)).toHaveLength(2)
    expect(await files.match('/workspace/a', /aa/g, { overlap: 1 })).toHaveLength(3)
    expect(await files.match('/workspace/a', /^b.$/gm)).toEqual(['b1', 'b2'])
    expect(await files.match('/workspace/a', /x*/g, { overlap: 5 })).toHaveLength(11)
  })

  test('what may be done where, a line for each place', () => {
    const domain = make()
    const use = [
      'file.list:/workspace/**',
      'file.read:/workspace/**',
      'file.write:/workspace/out/**',
      'file.delete:/workspace/out/**',
      'file.read:/userinput/brief.md',
      'file.*:/internal/log/**',
    ]

    expect(domain.open({ use }).describe()).toBe(
      [
        '/internal/log/: ls, stat, read, write',
        '/userinput/brief.md: read',
        '/workspace/: ls, stat, read',
        '/workspace/out/: ls, stat, read, write, delete',
      ].join('\n'),
    )
    expect(domain.open(ALL).describe()).toBe('/workspace/: ls, stat, read, write, delete')
    expect(domain.open({ use: [] }).describe()).toBe('')
  })

  test('slices of a text', async () => {
    const files = make().open(ALL)
    await files.write('/workspace/a', 'one\r\ntwo\nthree\n')

    expect(await files.readText('/workspace/a')).toBe('one\r\ntwo\nthree\n')
    expect(await files.readText('/workspace/a', { from: 1, count: 1 })).toBe('two')
    expect(await files.readText('/workspace/a', { from: 1 })).toBe('two\nthree')
    expect(await files.readText('/workspace/a', { from: 9 })).toBe('')
    expect(Buffer.from(await files.readBytes('/workspace/a', { offset: 5, length: 3 })).toString()).toBe('two')
  })

  describe('edits', () => {
    const text = 'alpha beta beta\n'
    test.each([
      ['absent', [{ oldText: 'gamma', newText: 'x' }], 'edit 1 of /workspace/a has 0 matches'],
      ['ambiguous', [{ oldText: 'beta', newText: 'x' }], 'edit 1 of /workspace/a has 2 matches'],
      [
        'the second absent after the first',
        [
          { oldText: 'alpha', newText: 'x' },
          { oldText: 'alpha', newText: 'y' },
        ],
        'edit 2 of /workspace/a has 0 matches',
      ],
    ])('%s: nothing is changed', async (_case, edits, words) => {
      const files = make().open(ALL)
      await files.write('/workspace/a', text)

      const error = await failure(files.edit('/workspace/a', edits))

      expect(error).toBeInstanceOf(InputError)
      expect(error.message).toContain(words)
      expect(await files.readText('/workspace/a')).toBe(text)
    })

    test('edits are made one after the other, and everywhere if asked', async () => {
      const files = make().open(ALL)
      await files.write('/workspace/a', text)

      const { size } = await files.edit('/workspace/a', [
        { oldText: 'alpha', newText: '$& gamma' },
        { oldText: 'gamma', newText: 'delta' },
        { oldText: 'beta', newText: 'B', replaceAll: true },
      ])

      expect(await files.readText('/workspace/a')).toBe('$& delta B B\n')
      expect(size).toBe('$& delta B B\n'.length)
    })

    test('a small edit cannot make a huge file', async () => {
      const files = make().open(ALL)
      await files.write('/workspace/a', 'x'.repeat(100_000))

      const edit = { oldText: 'x', newText: 'y'.repeat(1_000), replaceAll: true }

      expect((await failure(files.edit('/workspace/a', [edit]))).message).toMatch(/makes the file too large/)
    })

    test('what is too large to be shown at once is read in parts', async () => {
      const files = make().open(ALL)
      await files.write('/workspace/a', 'x'.repeat(16_000_001))

      for (const call of [() => files.readText('/workspace/a'), () => files.readBytes('/workspace/a')]) {
        expect((await failure(call())).message).toMatch(/^Too large to read at once: \/workspace\/a \(size=16000001\)/)
      }
      expect(await files.readBytes('/workspace/a', { offset: 16_000_000, length: 10 })).toHaveLength(1)
    })

    test('many at the same time lose nothing', async () => {
      const files = make().open(ALL)
      const names = Array.from({ length: 20 }, (_, index) => `<${index}>`)
      await files.write('/workspace/a', names.join(''))

      await Promise.all(names.map((name) => files.edit('/workspace/a', [{ oldText: name, newText: '.' }])))

      expect(await files.readText('/workspace/a')).toBe('.'.repeat(20))
    })

    test('bytes that are no text are neither shown nor edited', async () => {
      const files = make().open(ALL)
      const bytes = Uint8Array.from([0xff, 0xfe, 0, 65])
      await files.write('/workspace/a.bin', bytes)

      expect((await failure(files.readText('/workspace/a.bin'))).message).toMatch(
        /^Not a text file: \/workspace\/a.bin/,
      )
      expect(await failure(files.edit('/workspace/a.bin', [{ oldText: 'A', newText: 'B' }]))).toBeInstanceOf(InputError)
      expect(Uint8Array.from(await files.readBytes('/workspace/a.bin'))).toEqual(bytes)
    })

    test('a byte order mark stays', async () => {
      const files = make().open(ALL)
      await files.write('/workspace/a', '\ufeffone')

      await files.edit('/workspace/a', [{ oldText: 'one', newText: 'two' }])

      expect(await files.readText('/workspace/a')).toBe('\ufefftwo')
    })
  })

  test('the directories one may look into are those of the rules, and /internal/ only by name', () => {
    const domain = make()
    const allowed = (...use: string[]) => domain.open({ use }).allowedDirectories()

    expect(allowed('file.*:**')).toEqual(['/userinput/', '/workspace/'])
    expect(allowed('file.read:/workspace/docs/**')).toEqual(['/workspace/docs/'])
    expect(allowed('file.list:/internal/**', 'file.read:/userinput/**')).toEqual(['/internal/', '/userinput/'])
    expect(allowed('file.write:/workspace/**')).toEqual([])
    expect(allowed('tool:*')).toEqual([])
  })

  test('a file and a directory are not mistaken for one another', async () => {
    const files = make().open(ALL)
    await files.write('/workspace/a/b', 'x')

    const mistaken = [files.readText('/workspace/a'), files.write('/workspace/a', 'x'), files.delete('/workspace/a')]
    for (const { message } of await Promise.all(mistaken.map(failure))) {
      expect(message).toBe('Path not found: /workspace/a. It is a directory: list it instead.')
    }
    expect((await failure(files.readText('/workspace'))).message).toMatch(/It is a directory/)
    const absent = [files.readText('/workspace/a/b/c'), files.list('/workspace/a/b'), files.delete('/workspace/no')]
    for (const error of await Promise.all(absent.map(failure))) expect(error).toBeInstanceOf(NotFoundError)
    expect((await failure(files.list('/workspace/a/b'))).message).toBe(
      'Path not found: /workspace/a/b. It is not a directory. If it is a file, read it instead.',
    )
    expect(await failure(files.write('/workspace/a/b/c', 'x'))).toBeInstanceOf(LegateError)
    expect(await files.readText('/workspace/a/b')).toBe('x')
  })

  test('deleting removes one file and leaves its directory', async () => {
    const files = make().open(ALL)
    await files.write('/workspace/a/b', 'x')

    await files.delete('/workspace/a/b')

    expect((await files.list('/workspace/a')).entries).toEqual([])
    expect((await files.stat('/workspace/a')).type).toBe('directory')
    expect((await failure(files.readText('/workspace/a/b'))).message).toBe('Path not found: /workspace/a/b')
  })
})

/** The error of a call that must fail with one of ours. */
async function failure(call: Promise<unknown>): Promise<LegateError> {
  const error = await call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  if (LegateError.isInstance(error)) return error
  throw new Error(`It did not fail as it should: ${String(error)}`)
}

test.each([
  [
    'memory',
    (names: readonly string[]) => memoryFiles({ workspace: Object.fromEntries(names.map((one) => [one, ''])) }),
  ],
  [
    'disk',
    (names: readonly string[]) => {
      const workspace = tempFolder()
      for (const name of names) writeFileSync(join(workspace, name), '')
      return diskFiles({ workspace })
    },
  ],
])('a listing has 10,000 entries at most, and says that it was cut: %s', async (_, make) => {
  const names = Array.from({ length: 10_001 }, (_entry, at) => `${at}`)
  const files = make(names).open(ALL)

  const { entries, isCut } = await files.list('/workspace')
  await files.delete('/workspace/0')
  const whole = await files.list('/workspace')

  expect([entries.length, isCut]).toEqual([10_000, true])
  expect([whole.entries.length, whole.isCut]).toEqual([10_000, false])
})

test('Windows has files in memory, and none on its disk', () => {
  const { platform } = process
  onTestFinished(() => void Object.defineProperty(process, 'platform', { value: platform }))
  const workspace = tempFolder()
  Object.defineProperty(process, 'platform', { value: 'win32' })

  expect(() => diskFiles({ workspace })).toThrow(/needs Linux or macOS. Use memoryFiles/)
  expect(memoryFiles().open(ALL).allowedDirectories()).toEqual(['/workspace/'])
})

test('an operation on one path asks for that path only: no tree is walked', async () => {
  const asked: string[] = []
  const bytes = Buffer.from('text')
  const backend: FileBackend = {
    areas: ['workspace'],
    list: async ({ text }) => {
      asked.push(`list ${text}`)
      return []
    },
    stat: async ({ text }) => {
      asked.push(`stat ${text}`)
      return { path: text, type: 'file', size: 4, modifiedAt: 0 }
    },
    read: async ({ text }) => {
      asked.push(`read ${text}`)
      return { bytes, size: 4 }
    },
    write: async ({ text }) => {
      asked.push(`write ${text}`)
    },
    delete: async ({ text }) => {
      asked.push(`delete ${text}`)
    },
    inDirectory: ({ text }, work) => {
      asked.push(`run in ${text}`)
      return work(text)
    },
    nameOf: () => undefined,
    isOnDisk: false,
    within: () => backend,
    erase: async () => 0,
  }
  const files = new FileDomain(backend, {}).open(ALL)
  const path = '/workspace/a/b'

  await files.stat(path)
  await files.readText(path)
  await files.readBytes(path)
  await files.match(path, /t/g)
  await files.write(path, 'x')
  await files.edit(path, [{ oldText: 'text', newText: 'x' }])
  await files.delete(path)
  await files.list('/workspace/a')
  files.allowedDirectories()
  files.describe()

  expect(asked).toEqual(
    ['stat', 'read', 'read', 'read', 'write', 'read', 'write', 'delete']
      .map((operation) => `${operation} ${path}`)
      .concat('list /workspace/a'),
  )
})
