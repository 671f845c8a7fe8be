import { storeConformance } from 'legate/testing'
import { test } from 'vitest'
import { memoryStore } from '../../src/core/store/memory/index.ts'
import { remoteStore } from '../support/remote.ts'

storeConformance({ name: 'a store that is far away', open: () => remoteStore(memoryStore()), durable: false, test })
