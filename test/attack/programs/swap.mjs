// node swap.mjs WORKSPACE OUTSIDE: swaps directories and files of a workspace for links, pipes and hard links, as fast
// as it can, until it is killed.

import { execFileSync } from 'node:child_process'
import { existsSync, linkSync, mkdirSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'

const [workspace = '', outside = ''] = process.argv.slice(2)
const at = (...names) => path.join(workspace, ...names)

prepare()
process.stdout.write('ready\n')

for (let round = 0; ; round++) {
  if (round % 20 === 0) prepare()
  for (const name of ['link', 'pipe', 'hard']) swap(name, 'file')
  swap('link-to-directory', 'dir')
  swapBelow()
}

/** What the other side has removed or replaced is there again. */
function prepare() {
  for (const name of ['dir-aside', 'deep-aside']) attempt(() => rmSync(at(name), { recursive: true, force: true }))
  attempt(() => mkdirSync(at('dir', 'deep'), { recursive: true }))
  for (const name of ['dir/secret', 'dir/deep/secret', 'file']) {
    attempt(() => writeFileSync(at(name), 'inside', { flag: 'wx' }))
  }
  attempt(() => symlinkSync(path.join(outside, 'secret'), at('link')))
  attempt(() => symlinkSync(outside, at('link-to-directory')))
  attempt(() => unlinkSync(at('hard')))
  attempt(() => linkSync(path.join(outside, 'secret'), at('hard')))
  if (!existsSync(at('pipe'))) attempt(() => execFileSync('mkfifo', [at('pipe')]))
}

/** The one takes the place of the other, for a moment. */
function swap(evil, good) {
  attempt(() => renameSync(at(good), at(`${good}-aside`)))
  attempt(() => renameSync(at(evil), at(good)))
  attempt(() => renameSync(at(good), at(evil)))
  attempt(() => renameSync(at(`${good}-aside`), at(good)))
}

function swapBelow() {
  attempt(() => renameSync(at('dir', 'deep'), at('deep-aside')))
  attempt(() => symlinkSync(path.join(outside, 'deep'), at('dir', 'deep')))
  attempt(() => unlinkSync(at('dir', 'deep')))
  attempt(() => renameSync(at('deep-aside'), at('dir', 'deep')))
}

/** The other side also makes and removes files here. */
function attempt(change) {
  try {
    change()
  } catch {
    // It goes on with the next.
  }
}
