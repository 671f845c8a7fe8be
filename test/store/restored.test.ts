import { copyFileSync, renameSync, rmSync } from 'node:fs'
import path from 'node:path'
import { beforeEach, describe } from 'vitest'
import { connectTo } from '../../src/stores/sqlite/driver.ts'
import { testLost } from '../support/lost-store.ts'
import { skipUnlessBuilt } from '../support/program.ts'

beforeEach(skipUnlessBuilt)

describe('a file of SQLite', () => {
  testLost('it', async (folder) => {
    const name = path.join(folder, 'runs.db')
    const backup = path.join(folder, 'backup.db')
    return {
      name,
      backUp: async () => {
        const db = connectTo(name)
        db.exec(`VACUUM INTO '${backup}'`)
        db.close()
      },
      bringBack: async () => {
        for (const ending of ['', '-wal', '-shm']) rmSync(name + ending, { force: true })
        copyFileSync(backup, `${name}.new`)
        renameSync(`${name}.new`, name)
      },
    }
  })
})
