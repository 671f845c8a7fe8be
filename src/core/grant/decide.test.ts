import { describe, expect, test } from 'vitest'
import { decide, explain } from './decide.ts'
import { type Layer, useLayer } from './grant.ts'
import { hostRequest, readRequest } from './request.ts'

describe('a decision', () => {
  const allowing = (...allow: string[]): Layer => ({ by: 'me', allow, ask: [], deny: [] })

  test('without layers allows', () => {
    expect(decide([], readRequest('tool:x'))).toMatchObject({ verdict: 'allow', by: null })
  })

  test('without a rule denies, and says so', () => {
    expect(decide([allowing('tool:search')], readRequest('tool:deploy'))).toEqual({
      verdict: 'deny',
      by: 'me',
      reason: 'no rule of me allows tool:deploy',
    })
  })

  test('a rule for a host is for all its ports and for no other name of it', () => {
    const layers = [allowing('net:localhost')]

    expect(decide(layers, hostRequest('http://localhost:8080/')).verdict).toBe('allow')
    expect(decide(layers, hostRequest('https://LOCALHOST/')).verdict).toBe('allow')
    expect(decide(layers, hostRequest('http://127.0.0.1:8080/')).verdict).toBe('deny')
  })

  test('names the layer and the rule that decided', () => {
    const strict: Layer = { by: 'boss', allow: ['tool:*'], ask: ['tool:d*'], deny: ['tool:deploy'] }

    expect(decide([allowing('tool:*'), strict], readRequest('tool:deploy')).reason).toBe('boss denies tool:deploy')
    expect(decide([allowing('tool:*'), strict], readRequest('tool:draw'))).toMatchObject({
      verdict: 'ask',
      by: 'boss',
      reason: 'boss asks for tool:d*',
    })
  })

  test('deny beats ask, ask beats allow, within one layer', () => {
    const all: Layer = { by: 'me', allow: ['tool:*'], ask: ['tool:*'], deny: ['tool:x'] }

    expect(decide([all], readRequest('tool:x')).verdict).toBe('deny')
    expect(decide([all], readRequest('tool:y')).verdict).toBe('ask')
  })

  test('an exception from ask needs a rule of use too, and answers no other layer, no deny and nothing that never asks', () => {
    const careful: Layer = {
      by: 'me',
      allow: ['exec:*'],
      ask: ['exec:*'],
      deny: ['exec:npm test x'],
      free: ['exec:npm test *', 'exec:npm test'],
    }
    const verdict = (layers: readonly Layer[], request: string) => decide(layers, readRequest(request)).verdict

    expect(verdict([careful], 'exec:npm test')).toBe('allow')
    expect(verdict([careful], 'exec:npm test y')).toBe('allow')
    expect(verdict([careful], 'exec:npm install')).toBe('ask')
    expect(verdict([careful], 'exec:npm test x')).toBe('deny')
    expect(verdict([careful], 'exec:cd /workspace/a && npm test')).toBe('ask')
    expect(verdict([{ ...careful, allow: ['exec:git *'] }], 'exec:npm test')).toBe('ask')
    expect(verdict([careful, { by: 'you', allow: ['exec:*'], ask: ['exec:npm *'], deny: [] }], 'exec:npm test')).toBe(
      'ask',
    )
    expect(verdict([careful, { ...allowing('exec:*'), neverAsks: true }], 'exec:npm test')).toBe('allow')
    expect(verdict([careful, { ...allowing('exec:*'), neverAsks: true }], 'exec:npm install')).toBe('deny')
  })

  test('an exception for all files does not cover the files that decide which programs git runs', () => {
    const layer: Layer = {
      by: 'me',
      allow: ['file.*:**', 'file.write:/workspace/.git/**'],
      ask: ['file.write:**', 'file.write:/workspace/.git/**'],
      deny: [],
      free: ['file.*:**'],
    }
    const named = { ...layer, free: ['file.write:/workspace/.git/**'] }

    expect(decide([layer], readRequest('file.write:/workspace/a')).verdict).toBe('allow')
    expect(decide([layer], readRequest('file.write:/workspace/.git/config')).verdict).toBe('ask')
    expect(decide([named], readRequest('file.write:/workspace/.git/config')).verdict).toBe('allow')
  })

  test.each([
    ...[
      'git log --output=/etc/x',
      'git log --outpu=x',
      'git diff --no-index a b',
      'git diff --ext-diff',
      'git difftool',
    ],
    ...[
      "git -c alias.x='!sh' x",
      'git -C /else log',
      'git rebase -x make',
      'git grep -Oless x',
      'git clone -u prog x',
      'git clone -qu/bin/prog x',
      'git bisect run make',
    ],
    // Git takes the beginning of a long option for the whole of it, and short options stand together in one word.
    ...['git ls-remote --u=prog .', 'git push --e=prog x y', 'git pull --uplo=prog x', 'git grep -nOprog x'],
    // What these write chooses what git runs next, or lies anywhere.
    ...[
      'git config --global core.fsmonitor prog',
      'git bundle create /etc/x HEAD',
      'git fast-export --export-marks=/etc/x',
    ],
    ...['git worktree add /etc/x', 'git apply --unsafe-paths x', 'git an-alias', 'git help -w log'],
    ...['/usr/bin/git log -o x', 'env GIT_PAGER=x git log --upload-pack=x', 'cd /workspace/a && git log --output=x'],
  ])('a star of an exception does not cover %s, because that line may start a program or write a file', (line) => {
    const star: Layer = {
      by: 'me',
      allow: ['exec:*'],
      ask: ['exec:*'],
      deny: [],
      free: ['exec:*', 'exec:cd /workspace/* && git *'],
    }
    const request = readRequest(`exec:${line}`)

    expect(decide([star], request).verdict).toBe('ask')
    expect(decide([{ ...star, free: [`exec:${line}`] }], request).verdict).toBe('allow')
  })

  test.each([
    'git log --oneline -20',
    'git diff HEAD',
    'git commit -m "fix git"',
    'git add -u',
    'git push --recurse-submodules=check origin main',
    'git log --no-ext-diff --no-textconv -- src',
    'git --no-pager diff',
    'git --version',
    'gitk --output',
    'npm test',
  ])('a star of an exception covers %s', (line) => {
    const star: Layer = { by: 'me', allow: ['exec:*'], ask: ['exec:*'], deny: [], free: ['exec:*'] }

    expect(decide([star], readRequest(`exec:${line}`)).verdict).toBe('allow')
  })

  test('a star covers a command of git that its rule names, but not every option of it', () => {
    const named: Layer = {
      by: 'me',
      allow: ['exec:*'],
      ask: ['exec:*'],
      deny: [],
      free: ['exec:git worktree *', 'exec:git clone *'],
    }
    const verdict = (line: string) => decide([named], readRequest(`exec:${line}`)).verdict

    expect(verdict('git worktree list')).toBe('allow')
    expect(verdict('git clone https://example.com/x')).toBe('allow')
    expect(verdict('git clone -qu/bin/prog x')).toBe('ask')
    expect(verdict('git clone --u=/bin/prog x')).toBe('ask')
    expect(verdict('git config core.pager x')).toBe('ask')
  })

  test('explain names the exception and the ask that it answers', () => {
    const careful: Layer = { by: 'me', allow: ['exec:*'], ask: ['exec:*'], deny: [], free: ['exec:npm test'] }

    expect(explain([careful], 'exec:npm test').text).toBe(
      'exec:npm test: allow, every layer allows it\n  me: allow by free exec:npm test, an exception from ask exec:*',
    )
  })

  test('names the first of those that ask', () => {
    const asking = (by: string): Layer => ({ by, allow: ['tool:*'], ask: ['tool:x'], deny: [] })

    expect(decide([asking('one'), asking('two')], readRequest('tool:x'))).toMatchObject({ verdict: 'ask', by: 'one' })
  })

  test('where a layer has nobody asked, what another asks for is denied, in any order, and what is allowed stays so', () => {
    const asking: Layer = { by: 'one', allow: ['tool:*'], ask: ['tool:x'], deny: [] }
    const strict: Layer = { ...allowing('tool:*'), neverAsks: true }

    for (const layers of [[asking, strict], [strict, asking], [{ ...asking, neverAsks: true as const }]]) {
      expect(decide(layers, readRequest('tool:x')).verdict).toBe('deny')
      expect(decide(layers, readRequest('tool:y')).verdict).toBe('allow')
    }
    expect(decide([asking, strict], readRequest('tool:x'))).toMatchObject({
      by: 'me',
      reason: 'one asks for tool:x, and me denies what would be asked for',
    })
  })

  test('a rule of one domain says nothing of another', () => {
    expect(decide([allowing('agent:search')], readRequest('tool:search')).verdict).toBe('deny')
    expect(decide([allowing('tool:*')], readRequest('toolbox:x')).verdict).toBe('deny')
    expect(decide([allowing('file.read:**')], readRequest('file.write:/x')).verdict).toBe('deny')
    expect(decide([allowing('file.*:/x/**')], readRequest('file.write:/x/y')).verdict).toBe('allow')
    expect(decide([allowing('file.*:**')], readRequest('tool:x')).verdict).toBe('deny')
  })

  test('a layer without a rule for models says nothing of them; one with a rule does', () => {
    expect(decide([allowing('tool:*')], readRequest('model:openai/gpt')).verdict).toBe('allow')
    expect(decide([allowing()], readRequest('model:openai/gpt')).verdict).toBe('allow')
    expect(decide([allowing('model:openai/*')], readRequest('model:openai/gpt')).verdict).toBe('allow')
    expect(decide([allowing('model:openai/*')], readRequest('model:other/gpt')).verdict).toBe('deny')
    expect(decide([{ ...allowing(), deny: ['model:openai/*'] }], readRequest('model:openai/gpt')).verdict).toBe('deny')
  })

  test('a name that holds a colon is matched as a whole', () => {
    expect(decide([allowing('agent:team:lead')], readRequest('agent:team:lead')).verdict).toBe('allow')
    expect(decide([allowing('agent:team:lead')], readRequest('agent:team')).verdict).toBe('deny')
  })
})

describe('what was decided of the same layers is known', () => {
  /** Layers, and how often their rules were read. */
  function watched() {
    const read = { times: 0 }
    const layer: Layer = {
      by: 'me',
      allow: ['tool:*', 'agent:a*'],
      ask: [],
      get deny() {
        read.times++
        return []
      },
    }
    return { layers: [layer], read }
  }

  test('for each name, and for its domain only', () => {
    const { layers, read } = watched()
    const first = [decide(layers, readRequest('tool:a')), decide(layers, readRequest('tool:b'))]
    expect(read.times).toBe(2)

    expect([decide(layers, readRequest('tool:a')), decide(layers, readRequest('tool:b'))]).toEqual(first)
    expect(read.times).toBe(2)
    expect(decide(layers, readRequest('agent:b')).verdict).toBe('deny')
    expect(decide(layers, readRequest('agent:b')).verdict).toBe('deny')
    expect(read.times).toBe(3)
    expect(decide(layers, readRequest('tool:b')).verdict).toBe('allow')
    expect(read.times).toBe(4)
  })

  test('of other layers it says nothing, however alike', () => {
    const { layers, read } = watched()
    decide(layers, readRequest('tool:a'))

    decide([...layers], readRequest('tool:a'))

    expect(read.times).toBe(2)
  })

  test('for 64 names at most', () => {
    const { layers, read } = watched()
    for (let name = 0; name < 64; name++) decide(layers, readRequest(`tool:${name}`))
    decide(layers, readRequest('tool:0'))
    expect(read.times).toBe(64)

    decide(layers, readRequest('tool:64'))
    decide(layers, readRequest('tool:0'))

    expect(read.times).toBe(66)
  })
})

test('a rule that cannot be read restricts everything of its domain and allows nothing, in any order', () => {
  const layer = (given: Partial<Layer>): Layer => ({
    by: 'me',
    allow: ['exec:*', 'tool:*'],
    ask: [],
    deny: [],
    ...given,
  })
  const verdict = (given: Partial<Layer>, request: string) => decide([layer(given)], readRequest(request)).verdict

  expect(verdict({ deny: ["exec:echo it's", 'exec:rm *'] }, 'exec:ls')).toBe('deny')
  expect(verdict({ deny: ["exec:echo it's"] }, 'tool:x')).toBe('allow')
  expect(verdict({ ask: ["exec:echo it's"] }, 'exec:ls')).toBe('ask')
  expect(verdict({ allow: ["exec:echo it's"] }, 'exec:ls')).toBe('deny')
  expect(verdict({ allow: ["exec:echo it's", 'exec:ls'] }, 'exec:ls')).toBe('allow')
})

describe('explaining a decision', () => {
  test('an explanation has every voice in words: a rule, the want of one, or nothing to say', () => {
    const layers = [
      useLayer('app', { use: ['tool:*'] }),
      useLayer('host', { use: ['model:openai/*', 'agent:*'], ask: ['model:openai/dear'] }),
      useLayer('worker', { use: ['model:small'] }),
    ]

    expect(explain(layers, 'model:openai/dear')).toEqual({
      verdict: 'deny',
      by: 'worker',
      reason: 'no rule of worker allows model:openai/dear',
      request: 'model:openai/dear',
      answers: [
        { by: 'app', verdict: 'allow', rule: null },
        { by: 'host', verdict: 'ask', rule: 'model:openai/dear' },
        { by: 'worker', verdict: 'deny', rule: null },
      ],
      text: [
        'model:openai/dear: deny, no rule of worker allows model:openai/dear',
        '  app: says nothing',
        '  host: ask by model:openai/dear',
        '  worker: deny, no rule allows it',
      ].join('\n'),
    })
  })

  test('all that is allowed is explained too', () => {
    expect(explain([useLayer('me', { use: ['tool:a*'] })], 'tool:ab').text).toBe(
      'tool:ab: allow, every layer allows it\n  me: allow by tool:a*',
    )
    expect(explain([], 'tool:ab').text).toBe('tool:ab: allow, every layer allows it')
  })

  test('a layer that cannot be read says deny, and the others are still heard', () => {
    const broken = { by: 'broken', allow: null, ask: [], deny: [] } as unknown as Layer

    expect(explain([useLayer('me', undefined), broken], 'tool:x')).toMatchObject({
      verdict: 'deny',
      by: null,
      reason: expect.stringMatching(/^the rules cannot be read: ./),
      answers: [
        { by: 'me', verdict: 'allow', rule: 'tool:*' },
        { by: 'broken', verdict: 'deny', rule: null },
      ],
      text: expect.stringContaining('\n  broken: deny, no rule allows it'),
    })
  })
})
