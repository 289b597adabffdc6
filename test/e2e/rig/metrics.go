package rig

import (
	"context"
	"fmt"
	"net/http"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// scrapeWithin bounds one question to the metrics server.
const scrapeWithin = 5 * time.Second

// Metric asks a metrics server for a counter or gauge and returns the sum of those series that have all the labels.
func Metric(ctx context.Context, addr, name string, labels map[string]string) (float64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	client := &http.Client{Timeout: scrapeWithin, Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("scraping %s: %s", addr, answer.Status)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(answer.Body)
	if err != nil {
		return 0, fmt.Errorf("scraping %s: %w", addr, err)
	}
	family, ok := families[name]
	if !ok {
		return 0, fmt.Errorf("scraping %s: there is no %s", addr, name)
	}
	sum := 0.0
	for _, m := range family.GetMetric() {
		if hasLabels(m, labels) {
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() // it has one of them
		}
	}
	return sum, nil
}

func hasLabels(m *dto.Metric, labels map[string]string) bool {
	found := 0
	for _, l := range m.GetLabel() {
		if want, ok := labels[l.GetName()]; ok && want == l.GetValue() {
			found++
		}
	}
	return found == len(labels)
}
