// Package train makes the network with which AI-ECN infers thresholds, and judges it beside fixed
// thresholds and the other mechanisms, on traffic that it was not trained on.
//
// Training is an evolution strategy in whole numbers: pairs of mirrored changes of all weights are
// tried on short runs of the simulator, and the weights move towards those that did better. The
// same seed gives the same weights on every machine. Rigs and score are those of the
// published comparison that docs/model.md names.
package train
