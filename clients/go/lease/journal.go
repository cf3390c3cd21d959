package lease

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	pb "example.com/shop/gen/ordergateway/v1"
)

// Journal is a worker's memory: what must be on disk before it is done. One process has it at a time.
type Journal struct {
	// ID is made once; a permit is tied to it.
	ID     string
	folder string
	lock   *os.File
}

// entry is what the journal holds of a task.
type entry struct {
	LeaseToken string
	// Sequence is the number of the last report.
	Sequence int64
	// State is the one that it told.
	State pb.OrderState
	// Unsent is that report, until the gateway has answered it: a repeat is the same, number included.
	Unsent []byte
	// Ended: nothing more is to be said.
	Ended bool
}

// OpenJournal opens the journal in a folder, or makes it. It fails where another process has it.
func OpenJournal(folder string) (*Journal, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(folder, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, fmt.Errorf("the journal %s is another process's: %w", folder, err)
	}
	journal := &Journal{folder: folder, lock: lock}
	id, err := os.ReadFile(journal.path("journal_id"))
	if errors.Is(err, fs.ErrNotExist) {
		id = []byte(rand.Text())
		err = journal.write("journal_id", id)
	}
	journal.ID = string(id)
	return journal, err
}

// Close lets another process have the journal.
func (j *Journal) Close() error { return j.lock.Close() }

// RecordClick makes the click record of a task, which can exist once: an error means that nothing may be clicked.
func (j *Journal) RecordClick(taskID string) error {
	file, err := os.OpenFile(j.path(taskID+".click"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close(), j.syncFolder())
}

// Clicked tells whether a task has a click record.
func (j *Journal) Clicked(taskID string) bool {
	_, err := os.Stat(j.path(taskID + ".click"))
	return !errors.Is(err, fs.ErrNotExist)
}

func (j *Journal) path(name string) string { return filepath.Join(j.folder, name) }

func (j *Journal) load(taskID string) (entry, error) {
	var known entry
	text, err := os.ReadFile(j.path(taskID + ".task"))
	if errors.Is(err, fs.ErrNotExist) {
		return known, nil
	}
	return known, errors.Join(err, json.Unmarshal(text, &known))
}

func (j *Journal) store(taskID string, known entry) error {
	text, err := json.Marshal(known)
	return errors.Join(err, j.write(taskID+".task", text))
}

// tasks lists the tasks that the journal knows.
func (j *Journal) tasks() ([]string, error) {
	paths, err := filepath.Glob(j.path("*.task"))
	for index, path := range paths {
		paths[index] = strings.TrimSuffix(filepath.Base(path), ".task")
	}
	return paths, err
}

// write replaces a file as a whole; when it returns, the file outlives a power cut.
func (j *Journal) write(name string, text []byte) error {
	file, err := os.CreateTemp(j.folder, "new-")
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), j.path(name))
	}
	return errors.Join(err, j.syncFolder())
}

func (j *Journal) syncFolder() error {
	folder, err := os.Open(j.folder)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
