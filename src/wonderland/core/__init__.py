"""The ground floor: arrays, evidence, solutions, errors, storage. Imports nothing above it."""
